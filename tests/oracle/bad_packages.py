"""One bad package per code: the smallest change to a good one that breaks exactly that clause.

`python -m tests.oracle.bad_packages` rewrites tests/golden/bad/ byte for byte; a test says so when it
would differ. A package lies there as a folder, or as package.tar where a file system could not hold it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from oracle.codes import CODES
from tests.oracle import bad_stories as stories
from tests.oracle.bad_bytes import BYTES, Bad
from tests.oracle.builder import control, package_with
from tests.oracle.frozen import typed
from tests.oracle.protocols import REHEARSAL_TOML

BAD = Path(__file__).resolve().parent.parent / "golden" / "bad"
TRIAL = "trials/control-conventional/"


def _documents(change, story=control, toml=REHEARSAL_TOML) -> Bad:
    """A good package with one change to its documents, under a true index."""
    package = package_with(story, protocol_toml=toml)
    change(package.docs)
    return Bad(package.render())


def _story(story, toml=REHEARSAL_TOML) -> Bad:
    return Bad(package_with(story, protocol_toml=toml).render())


def _drop_folder(docs, folder):
    for path in [path for path in docs if path.startswith(folder)]:
        del docs[path]


def _set(path, *steps_and_value):
    """A change that sets one member, named by its steps, to a value."""
    *steps, last, value = steps_and_value

    def change(docs):
        node = docs[path]
        for step in steps:
            node = node[step]
        node[last] = value

    return change


def _no_probe(docs):
    _drop_folder(docs, "trials/probe-1/")
    docs["run.json"]["probe"] = None


def _no_trials(docs):
    _drop_folder(docs, TRIAL)
    docs["run.json"]["trials"] = []


def _late_samples_first(docs):
    """What was seen last stands first, out of the settle window's sight."""
    samples = docs[TRIAL + "queues.jsonl"]
    samples[:] = samples[-2:] + samples[:-2]


def _second_row(**changes):
    """A second ledger row in both snapshots, without a commit of its own."""

    def change(docs):
        for record in docs[TRIAL + "ledger.jsonl"]:
            row = dict(record["response"]["Items"][0])
            row |= {
                "transaction_id": {"S": "txn-2"},
                **{name: typed(value) for name, value in changes.items()},
            }
            record["response"] = {
                "Items": [record["response"]["Items"][0], row],
                "Count": 2,
                "ScannedCount": 2,
            }

    return change


def _row(which=(0, 1), **changes):
    def change(docs):
        for number in which:
            docs[TRIAL + "ledger.jsonl"][number]["response"]["Items"][0].update(
                {name: typed(value) for name, value in changes.items()}
            )

    return change


def _items(docs):
    return docs[TRIAL + "journal.jsonl"][0]["response"]["Items"]


def _journal(edit):
    """A change of the journal's items, with Count made true again."""

    def change(docs):
        edit(_items(docs))
        response = docs[TRIAL + "journal.jsonl"][0]["response"]
        response["Count"] = response["ScannedCount"] = len(response["Items"])

    return change


def _durable(change):
    return _documents(
        lambda docs: change(docs["trials/control-durable/durable.jsonl"]), stories.control_durable
    )


def _running_execution(lines):
    for line in lines:
        if line["read"] == "executions":
            other = {
                **line["response"]["DurableExecutions"][0],
                "DurableExecutionArn": "other/inv-1",
                "Status": "RUNNING",
            }
            line["response"]["DurableExecutions"].append(other)


def _conflicting_event(lines):
    events = lines[-1]["response"]["Events"]
    events.insert(2, {**events[1], "Name": "another"})


def _queue_count(line, name, value):
    return _set(TRIAL + "queues.jsonl", line, "response", "Attributes", name, value)


def _alias_only(lines):
    del lines[1]


def _other_trials_input(lines):
    lines[4]["response"]["InputPayload"] = lines[4]["response"]["InputPayload"].replace(
        "control-durable", "another"
    )


VISIBLE = "ApproximateNumberOfMessages"
LEDGER, JOURNAL, QUEUES = TRIAL + "ledger.jsonl", TRIAL + "journal.jsonl", TRIAL + "queues.jsonl"
NO_CELL = REHEARSAL_TOML.replace('[[order]]\nscenario = "CONTROL"\nvariant = "conventional"\n\n', "")
APPROVED_OVER_CAPTURED = REHEARSAL_TOML.replace("approved_minor = 10000", "approved_minor = 12000")
CAPTURED_TWICE = REHEARSAL_TOML.replace("captured_minor = 10000", "captured_minor = 20000")

# code: (slug, how it is made)
TABLE = {
    "K01": ("no_template", lambda: _documents(lambda docs: docs.pop("template.json"))),
    "K02": ("run_without_id", lambda: _documents(lambda docs: docs["run.json"].pop("run_id"))),
    "K03": (
        "protocol_json_differs",
        lambda: _documents(_set("protocol.json", "caller", "deadline_ms", 2999)),
    ),
    "K04": ("another_protocol", lambda: _documents(_set("run.json", "protocol", "study-1"))),
    "K05": ("local_called_aws", lambda: _documents(_set("environment.json", "grade", "aws"))),
    "K06": ("no_trials", lambda: _documents(_no_trials)),
    "K07": (
        "stray_trial",
        lambda: _documents(lambda docs: docs["run.json"]["trials"].pop(0), stories.one_listed_one_not),
    ),
    "K08": ("no_probe", lambda: _documents(_no_probe)),
    "K09": (
        "template_without_resources",
        lambda: _documents(lambda docs: docs["template.json"].pop("Resources")),
    ),
    "T01": ("no_queues", lambda: _documents(lambda docs: docs.pop(QUEUES))),
    "T02": ("armed_is_text", lambda: _documents(_set(TRIAL + "trial.json", "armed", "no"))),
    "T03": ("another_run", lambda: _documents(_set(TRIAL + "trial.json", "run_id", "run-2"))),
    "R01": ("extra_member", lambda: _documents(_set(QUEUES, 0, "comment", "hello"))),
    "R02": ("read_unknown", lambda: _documents(_set(QUEUES, 0, "read", "queue_other"))),
    "R03": ("first_page_missing", lambda: _documents(_set(JOURNAL, 0, "page", 2))),
    "R04": ("marker_leads_on", lambda: _documents(_set(LEDGER, 1, "marker_out", {"trial_id": {"S": "x"}}))),
    "R05": ("eventually_consistent", lambda: _documents(_set(LEDGER, 1, "request", "ConsistentRead", False))),
    "R06": ("through_an_index", lambda: _documents(_set(LEDGER, 1, "request", "IndexName", "by-payment"))),
    "R07": ("count_too_high", lambda: _documents(_set(LEDGER, 1, "response", "Count", 2))),
    "R08": ("read_failed", lambda: _documents(stories.failed_sample(QUEUES))),
    "R09": ("another_table", lambda: _documents(_set(LEDGER, 1, "request", "TableName", "other"))),
    "G01": ("request_without_status", lambda: _documents(_journal(lambda items: items[-1].pop("status")))),
    "G02": ("gap", lambda: _documents(_journal(lambda items: items.pop(3)))),
    "G03": ("counter_behind", lambda: _documents(_journal(lambda items: items[0].update(n={"N": "4"})))),
    "G04": (
        "event_id_twice",
        lambda: _documents(_journal(lambda items: items[3].update(event_id=items[2]["event_id"]))),
    ),
    "G05": ("not_closed", lambda: _story(stories.never_closed)),
    "G06": (
        "provider_sends",
        lambda: _documents(_journal(lambda items: items[3].update(source={"S": "provider"}))),
    ),
    "G07": (
        "finished_event_only",
        lambda: _documents(_journal(lambda items: items[-1].update(status={"S": "IN_PROGRESS"}))),
    ),
    "G08": ("two_outcomes", lambda: _story(stories.two_outcomes)),
    "G09": ("call_in_flight", lambda: _story(stories.call_in_flight)),
    "G10": ("knows_again", lambda: _story(stories.knows_again)),
    "L01": (
        "row_without_currency",
        lambda: _documents(stories.without(LEDGER, "currency", _second_row(status="FAILED"))),
    ),
    "L02": ("one_snapshot", lambda: _documents(lambda docs: docs[LEDGER].pop())),
    "L03": ("snapshots_differ", lambda: _documents(_row(which=(0,), committed_at_ms=1))),
    "L04": ("commit_of_another_attempt", lambda: _documents(_row(attempt=7))),
    "L05": ("status_unknown", lambda: _documents(_second_row(status="MAYBE"))),
    "L06": ("still_pending", lambda: _documents(_second_row(status="PENDING"))),
    "Q01": ("two_samples", lambda: _documents(lambda docs: docs[QUEUES].__delitem__(slice(0, 2)))),
    "Q02": ("message_in_source", lambda: _documents(_queue_count(2, VISIBLE + "NotVisible", "1"))),
    "Q03": ("message_in_dlq", lambda: _documents(_queue_count(5, VISIBLE, "1"))),
    "Q04": ("in_progress", lambda: _story(stories.unfinished)),
    "Q05": ("out_of_time", lambda: _documents(_set(TRIAL + "trial.json", "ended_because", "trial_limit"))),
    "Q06": ("samples_out_of_order", lambda: _documents(_late_samples_first)),
    "H01": ("versions_not_listed", lambda: _durable(lambda lines: lines.pop(0))),
    "H02": ("never_listed_unqualified", lambda: _durable(_alias_only)),
    "H03": ("still_running", lambda: _durable(_running_execution)),
    "H04": ("history_without_end", lambda: _durable(lambda lines: lines[-1]["response"]["Events"].pop())),
    "H05": ("event_id_twice", lambda: _durable(_conflicting_event)),
    "H06": ("input_truncated", lambda: _durable(stories.truncate_input)),
    "H07": ("nobodys_execution", lambda: _durable(_other_trials_input)),
    "E01": ("two_effects", lambda: _story(stories.two_effects, CAPTURED_TWICE)),
    "E02": ("over_captured", lambda: _story(control, APPROVED_OVER_CAPTURED)),
    "E03": ("one_cent_less", lambda: _documents(_row(amount_minor=9999))),
    "E04": ("refused", lambda: _story(stories.refused)),
    "V01": ("another_payment", lambda: _story(stories.another_payment)),
    "V02": ("no_such_cell", lambda: _story(control, NO_CELL)),
    "V03": ("another_group", lambda: _documents(_set(TRIAL + "trial.json", "message", "group_id", "other"))),
    "V04": (
        "visibility_too_short",
        lambda: _documents(
            _set("template.json", "Resources", "DurableQueue", "Properties", "VisibilityTimeout", 10),
            stories.control_durable,
        ),
    ),
    "V05": (
        "no_mapping",
        lambda: _documents(
            lambda docs: docs["template.json"]["Resources"].pop("DurableMapping"), stories.control_durable
        ),
    ),
    "V06": ("sdk_retries", lambda: _documents(stories.sdk_retries, stories.control_durable)),
    "V07": (
        "driver_received",
        lambda: _documents(_set(TRIAL + "trial.json", "driver", "source_queue_receives", 1)),
    ),
    "V08": ("answer_lost_in_control", lambda: _story(stories.answer_lost)),
    "V09": ("control_armed", lambda: _documents(_set(TRIAL + "trial.json", "armed", True))),
    "V10": ("armed_after_send", lambda: _story(stories.armed_after_send)),
    "V11": ("timeout_before_commit", lambda: _story(stories.timeout_before_commit)),
    "V12": ("released_by_another", lambda: _story(stories.released_by_another)),
    "V13": ("below_deadline", lambda: _story(stories.below_deadline)),
    "V14": ("barrier_expired", lambda: _story(stories.barrier_expired)),
    "V15": ("no_retry", lambda: _story(stories.no_retry)),
    "V16": ("never_fired", lambda: _story(stories.never_fired)),
    "V17": ("two_on_the_wire", lambda: _story(stories.two_on_the_wire)),
    "N01": ("provider_clock_behind", lambda: _documents(_journal(stories.clock_behind))),
}
TABLE |= BYTES
# Two effects break the count and, being more than the authorised set, the set as well.
MORE = {"E01": {"E03"}}


def expected(code: str) -> dict:
    consequence = CODES[code].consequence
    verdict = {"violation": "fail", "note": "pass"}.get(consequence, "indeterminate")
    return {"codes": sorted({code} | MORE.get(code, set())), "verdict": verdict}


def fixtures():
    """Yield (folder name, Bad) for every code, in the order of the codes."""
    for code in CODES:
        slug, make = TABLE[code]
        yield f"{code}_{slug}", make()


def write_all(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    for name, bad in fixtures():
        bad.write(root / name)
        (root / name / "expected.json").write_text(json.dumps(expected(name[:3]), sort_keys=True) + "\n")


def package_in(folder: Path) -> Path:
    """The package of a fixture folder: the one entry beside expected.json."""
    (package,) = [entry for entry in folder.iterdir() if entry.name != "expected.json"]
    return package


if __name__ == "__main__":
    write_all(BAD)
    print(f"wrote {len(TABLE)} packages under tests/golden/bad", file=sys.stderr)
