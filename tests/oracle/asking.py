"""Short questions that the tests of rules and cases ask of a package."""

from __future__ import annotations

from tests.oracle.builder import package_with, treatment
from tests.oracle.memory import codes, judge
from tests.oracle.protocols import REHEARSAL_TOML


def idempotent(package):
    return treatment(package, trial_id="t", idempotent=True)


def found(package):
    report = judge(package)
    return report.trials[0].verdict, report.trials[0].validity, codes(report)


def events(package, trial_id="t"):
    return package.docs[f"trials/{trial_id}/journal.jsonl"][0]["response"]["Items"]


def event(package, name, trial_id="t"):
    return next(item for item in events(package, trial_id) if item.get("type") == {"S": name})


def trial_of(package):
    return judge(package).trials[0]


def judged(story, toml=REHEARSAL_TOML):
    return trial_of(package_with(story, protocol_toml=toml))


def changed(story, change, variant="conventional"):
    """The verdict of a story after a change of its documents by file name."""
    package = package_with(story)
    folder = next(path.rsplit("/", 1)[0] for path in package.docs if path.endswith("queues.jsonl"))
    change({path.rsplit("/", 1)[1]: doc for path, doc in package.docs.items() if path.startswith(folder)})
    return trial_of(package)
