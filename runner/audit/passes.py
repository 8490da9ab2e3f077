"""One pass over every kind, and two of them with a delay: a clean look right after is not proof.

A stack's late log lines can bring a log group back, and listings run behind (CASES D29, D30).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.audit import assets
from runner.audit.ask import Asker, Refused
from runner.audit.finding import BY_NAME, BY_TAG, BY_TEMPLATE, CLEAN, Finding, Seen, Status, gone, unknown
from runner.audit.kinds import CARRIED, KINDS
from runner.audit.tags import kind_of, tagged
from runner.targets.accounts import Account

FORMAT, VERSION = "suc-audit", 1
PASSES = 2
# A resource that is being deleted is asked again, this often at most beyond the two passes.
EXTRA_PASSES = 3
TAGGING = "resource tagging API"


@dataclass(frozen=True)
class Scope:
    """What is looked for: the resource types of the templates, and the assets they name."""

    types: frozenset[str]
    assets: tuple[str, ...]

    @classmethod
    def of(cls, account: Account, templates: Iterable[dict[str, Any]], assembly: Path | None) -> "Scope":
        """Return the scope of every template that is known to have been deployed, or would be."""
        types, objects = set(), set()
        for template in templates:
            types |= {resource["Type"] for resource in template.get("Resources", {}).values()}
            objects |= set(assets.asset_objects(account, template, assembly))
        return cls(frozenset(types), tuple(sorted(objects)))


@dataclass(frozen=True)
class Audit:
    """The passes of one audit and all that was read for them."""

    account: Account
    started_at_ms: int
    delay_s: int
    passes: list[tuple[int, list[Finding]]]
    asker: Asker = field(repr=False)

    @property
    def findings(self) -> list[Finding]:
        """What the last pass found; it is the one that counts."""
        return self.passes[-1][1]

    @property
    def clean(self) -> bool:
        """Whether there were two passes and the last saw nothing but GONE and expected remnants."""
        found = self.findings
        return len(self.passes) >= PASSES and bool(found) and all(f.status in CLEAN for f in found)

    def as_json(self) -> dict[str, Any]:
        """Return audit.json's object."""
        account = self.account
        return {
            "format": FORMAT,
            "version": VERSION,
            "target": account.target,
            "grade": account.grade,
            "region": account.region,
            "account": account.account,
            "stack": account.stack,
            "study": account.study,
            "started_at_ms": self.started_at_ms,
            "delay_s": self.delay_s,
            "clean": self.clean,
            "counts": {str(s): sum(f.status == s for f in self.findings) for s in Status},
            "passes": [
                {"number": number, "at_ms": at_ms, "findings": [f.as_json() for f in found]}
                for number, (at_ms, found) in enumerate(self.passes, 1)
            ],
        }


def audit(
    account: Account,
    scope: Scope,
    *,
    delay_s: int,
    now_ms: Callable[[], int],
    sleep: Callable[[float], None],
    note: Callable[[str], None] = lambda _text: None,
) -> Audit:
    """Look twice, `delay_s` apart; again while something is still being deleted."""
    asker = Asker(account, now_ms)
    started, passes = now_ms(), []
    while True:
        at_ms = now_ms()
        found = one_pass(asker, scope)
        passes.append((at_ms, found))
        left = [f for f in found if f.status not in CLEAN]
        note(f"pass {len(passes)}: {len(left)} not clean" if left else f"pass {len(passes)}: clean")
        enough = len(passes) >= PASSES and not any(f.seen.deleting for f in found)
        if enough or len(passes) >= PASSES + EXTRA_PASSES:
            return Audit(account, started, delay_s, passes, asker)
        sleep(delay_s)


def one_pass(ask: Asker, scope: Scope) -> list[Finding]:
    """Return what is found by name, by tag and by the template, each confirmed by its service."""
    found: dict[tuple[str, str], Finding] = {}
    for kind in KINDS.values():
        for finding in _by_name(ask, kind):
            found[finding.type, finding.identifier] = finding
    for finding in _by_tag(ask):
        key = finding.type, finding.identifier
        found[key] = found[key].also_by(BY_TAG) if key in found else finding
    for name in scope.assets:
        seen = _asked(lambda name=name: assets.describe(ask, name))
        found[assets.TYPE, name] = Finding(assets.TYPE, name, seen, (BY_TEMPLATE,))
    findings = [*found.values(), *_other_types(scope, list(found.values()), ask.account.prefix)]
    return sorted(findings, key=lambda f: (f.type, f.identifier))


def _by_name(ask: Asker, kind: Any) -> list[Finding]:
    try:
        names = sorted(set(kind.names(ask)))
    except Refused as refused:
        seen = unknown(f"could not be listed: {refused.found}")
        return [Finding(kind.type, f"{ask.account.prefix}*", seen, (BY_NAME,))]
    if not names:
        seen = gone("nothing is listed under the prefix")
        return [Finding(kind.type, f"{ask.account.prefix}*", seen, (BY_NAME,))]
    return [
        Finding(kind.type, name, _asked(lambda name=name: kind.describe(ask, name)), (BY_NAME,))
        for name in names
    ]


def _by_tag(ask: Asker) -> list[Finding]:
    try:
        arns = list(tagged(ask))
    except Refused as refused:
        seen = unknown(f"could not be asked: {refused.found}")
        return [Finding(TAGGING, ask.account.study, seen, (BY_TAG,))]
    findings = []
    for arn in arns:
        known = kind_of(arn)
        if known is None:
            seen = unknown("tagged with this study, and of a kind the audit does not know")
            findings.append(Finding(TAGGING, arn, seen, (BY_TAG,)))
            continue
        kind, name = known
        seen = _asked(lambda kind=kind, name=name: kind.describe(ask, name))
        if seen.status == Status.GONE:
            seen = gone("a ghost: the tagging API lists it, its own service knows nothing of it")
        findings.append(Finding(kind.type, name, seen, (BY_TAG,)))
    return findings


def _other_types(scope: Scope, found: list[Finding], prefix: str) -> list[Finding]:
    """Return findings for the template's types that have no listing of their own."""
    others = []
    for type_ in sorted(scope.types - KINDS.keys()):
        if type_ in CARRIED:
            carriers = [f.status for f in found if f.type == CARRIED[type_]]
            worst = next((s for s in (Status.PRESENT, Status.UNKNOWN) if s in carriers), Status.GONE)
            seen = Seen(worst, f"lives inside its {CARRIED[type_]} and goes with it")
        else:
            seen = unknown("the template has this type and the audit does not know how to look for it")
        others.append(Finding(type_, f"{prefix}*", seen, (BY_TEMPLATE,)))
    return others


def _asked(describe: Callable[[], Seen]) -> Seen:
    """Return what the service says; an error that is not "no such thing" is UNKNOWN."""
    try:
        return describe()
    except Refused as refused:
        return gone("the service knows nothing of it") if refused.absent else unknown(refused.found)
