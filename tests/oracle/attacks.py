"""Changes that somebody makes who wants a pass that is none, or a fail that nobody sees.

Each works on the documents of a whole package that is sound but for it; `ATTACKS` says on which story, which
codes tell it and with what verdict. Every one of them got through once, except those marked as neighbours.
"""

from __future__ import annotations

import copy

from tests.oracle.builder import control, treatment
from tests.oracle.frozen import typed

CONTROL, DURABLE = "trials/control-conventional/", "trials/control-durable/"
TREATMENT = "trials/treatment-conventional/"


def idempotent(package):
    return treatment(package, idempotent=True)


def durable(package):
    return control(package, "durable")


def items(docs, path, line=0):
    return docs[path][line]["response"]["Items"]


def put(docs, path, line, found):
    docs[path][line]["response"].update(Items=found, Count=len(found), ScannedCount=len(found))


def event(docs, folder, name):
    return next(i for i in items(docs, folder + "journal.jsonl") if i.get("type") == {"S": name})


def entry(docs, folder, name):
    return next(i for i in items(docs, folder + "journal.jsonl") if i["entry"] == {"S": name})


def read(docs, name, of=None):
    found = docs[DURABLE + "durable.jsonl"]
    return next(r for r in found if r["read"] == name and of in (None, r["of"]))


def add(docs, record):
    docs[DURABLE + "durable.jsonl"].append(record)


def second_page(record, marker="m", **response):
    """The record becomes the first of two pages; returns the second."""
    record["marker_out"] = record["response"]["NextMarker"] = marker
    page = copy.deepcopy(record)
    page.update(page=2, marker_in=marker, marker_out=None, response=response)
    page["request"]["Marker"] = marker
    return page


# -- ledger --------------------------------------------------------------------------------------------
def snapshots(*changes, extra=None):
    """Three snapshots of a CONTROL: in each the row with its changes, and perhaps a second row."""

    def change(docs):
        path = CONTROL + "ledger.jsonl"
        (row,) = items(docs, path)
        lines = []
        for number, changed in enumerate(changes, 1):
            line = copy.deepcopy(docs[path][0])
            line["read"] = f"ledger_snapshot_{number}"
            rows = [row, {**row, **extra}] if extra else [row]
            rows[-1] = {**rows[-1], **{name: typed(value) for name, value in changed.items()}}
            line["response"] = {"Items": rows, "Count": len(rows), "ScannedCount": len(rows)}
            lines.append(line)
        docs[path] = lines

    return change


SECOND = {"transaction_id": {"S": "txn-9"}, "status": {"S": "FAILED"}}


def renamed_snapshots(*numbers):
    def change(docs):
        for line, number in zip(docs[CONTROL + "ledger.jsonl"], numbers, strict=True):
            line["read"] = f"ledger_snapshot_{number}"

    return change


def appeared_last(docs):
    path = CONTROL + "ledger.jsonl"
    (row,) = items(docs, path)
    put(docs, path, 1, [row, {**row, **SECOND}])


def hidden_behind_its_own_failure(docs):
    path = TREATMENT + "ledger.jsonl"
    for line in (0, 1):
        first, second = items(docs, path, line)
        put(docs, path, line, [first, {**second, "status": {"S": "FAILED"}}, second])


def scanned_more(path):
    return lambda docs: [
        line["response"].update(ScannedCount=9) for line in docs[path] if "Items" in line["response"]
    ]


def contradicting_twin(docs):
    path = TREATMENT + "ledger.jsonl"
    whole = copy.deepcopy(docs[path][0])
    for line in (0, 1):
        put(docs, path, line, items(docs, path, line)[:1])
    docs[path].append(whole)


def spelled_alike(one, other):
    def change(docs):
        for line in (0, 1):
            for row, name in zip(items(docs, TREATMENT + "ledger.jsonl", line), (one, other), strict=True):
                row["transaction_id"] = {"S": name}

    return change


def amount(value):
    def change(docs):
        for line in (0, 1):
            items(docs, CONTROL + "ledger.jsonl", line)[0]["amount_minor"] = value

    return change


# -- journal -------------------------------------------------------------------------------------------
def start_twice(docs):
    path = TREATMENT + "journal.jsonl"
    put(docs, path, 0, [*items(docs, path), event(docs, TREATMENT, "message_send_started")])


def journal_page_again(docs):
    docs[TREATMENT + "journal.jsonl"].append({**docs[TREATMENT + "journal.jsonl"][0], "page": 2})


def barrier_error_beside(docs):
    record = copy.deepcopy(docs[CONTROL + "journal.jsonl"][1])
    del record["response"]
    docs[CONTROL + "journal.jsonl"].append({**record, "error": {"code": "Throttled", "message": ""}})


def projected_barrier(docs):
    docs[CONTROL + "journal.jsonl"][1]["request"]["AttributesToGet"] = ["state"]


def refused_and_committed(docs):
    answer = event(docs, CONTROL, "response_received")
    answer.update(type={"S": "attempt_failed"}, detail=typed({"code": "INVALID_REQUEST"}))
    entry(docs, CONTROL, "REQUEST")["reason"] = {"S": "PROVIDER_REFUSED"}


def never_sent(docs):
    """The message_sent event becomes one that the driver may also write, so no number is missing."""
    event(docs, CONTROL, "message_sent")["type"] = {"S": "probe_invoked"}


# -- queues --------------------------------------------------------------------------------------------
def samples(change):
    def changed(docs):
        docs[CONTROL + "queues.jsonl"] = change(docs[CONTROL + "queues.jsonl"])

    return changed


def late_first(lines):
    late = copy.deepcopy(lines[-2:])
    for line in late:
        line["at_ms"] += 5_000
        line["response"]["Attributes"]["ApproximateNumberOfMessages"] = "1"
    return late + lines


# -- durable executions --------------------------------------------------------------------------------
def garbled_execution(docs):
    read(docs, "executions", "1")["response"]["DurableExecutions"].append("RUNNING")


def garbled_version(docs):
    read(docs, "versions")["response"]["Versions"][1] = "1"
    docs[DURABLE + "durable.jsonl"].remove(read(docs, "executions", "1"))


def hidden_history(docs):
    history = copy.deepcopy(read(docs, "history"))
    history["of"] = history["request"]["DurableExecutionArn"] = "hidden"
    history["response"]["Events"].pop()
    add(docs, history)


def listed_nowhere(docs):
    for of in ("", "$LATEST", "1"):
        read(docs, "executions", of)["response"]["DurableExecutions"] = []


def two_trial_ids(docs):
    response = read(docs, "execution")["response"]
    response["InputPayload"] = response["InputPayload"].replace(
        '{\\"request', '{\\"trial_id\\":\\"x\\",\\"request'
    )


def page_after_the_last(docs):
    add(docs, {**read(docs, "executions", ""), "page": 2})


# -- message, template, run ----------------------------------------------------------------------------
def two_requests(docs):
    message = docs[CONTROL + "trial.json"]["message"]
    message["body"] = '{"request":{"approved_minor":1},' + message["body"][1:]


def one_of_two_queues(docs):
    mapping = docs["template.json"]["Resources"]["ConventionalMapping"]["Properties"]
    other = {"Fn::GetAtt": ["DurableQueue", "Arn"]}
    mapping["EventSourceArn"] = {"Fn::If": ["Flag", mapping["EventSourceArn"], other]}


def perhaps(member, other):
    def change(docs):
        mapping = docs["template.json"]["Resources"]["ConventionalMapping"]["Properties"]
        mapping[member] = {"Fn::If": ["Flag", mapping[member], other]}

    return change


def conditional(name):
    return lambda docs: docs["template.json"]["Resources"][name].update(Condition="Never")


def history_events(change):
    return lambda docs: change(read(docs, "history")["response"]["Events"])


def in_run(**members):
    return lambda docs: docs["run.json"].update(members)


NOT, FAIL = "indeterminate", "fail"
# By what it is: the story, the change, the codes that tell it, the verdict.
ATTACKS = {
    "an effect behind a failed version of itself": (
        treatment,
        hidden_behind_its_own_failure,
        "E01 L01",
        FAIL,
    ),
    "an amount that shrank": (control, snapshots({"amount_minor": 20_000}, {}, {}), "L03", NOT),
    "an effect that was undone": (
        control,
        snapshots({}, {"status": "FAILED"}, {"status": "FAILED"}),
        "L03",
        NOT,
    ),
    "an unknown status in an old snapshot": (
        control,
        snapshots({"status": "REVERSED"}, {}, {}, extra=SECOND),
        "L03 L05",
        NOT,
    ),
    "neighbour: a row that the last snapshot alone shows": (control, appeared_last, "L03", NOT),
    "neighbour: what was pending may fail": (
        control,
        snapshots({"status": "PENDING"}, {}, {}, extra=SECOND),
        "",
        "pass",
    ),
    "the middle snapshot is gone": (control, renamed_snapshots(1, 3), "L02", NOT),
    "the first snapshot is gone": (control, renamed_snapshots(2, 3), "L02", NOT),
    "more rows scanned than shown in the ledger": (
        control,
        scanned_more(CONTROL + "ledger.jsonl"),
        "R07",
        NOT,
    ),
    "more items scanned than shown in the journal": (
        control,
        scanned_more(CONTROL + "journal.jsonl"),
        "R07",
        NOT,
    ),
    "neighbour: an effect on a contradicting page": (treatment, contradicting_twin, "E01 E02 E03 R03", FAIL),
    "neighbour: ids that look alike": (
        treatment,
        spelled_alike("txn-\u00e9", "txn-e\u0301"),
        "E01 E02 E03 L04",
        FAIL,
    ),
    "neighbour: ids that differ by a space": (
        treatment,
        spelled_alike("txn", "txn "),
        "E01 E02 E03 L04",
        FAIL,
    ),
    "neighbour: an amount as 1E4": (control, amount({"N": "1E4"}), "L01", NOT),
    "neighbour: an amount with a zero before it": (control, amount({"N": "010000"}), "L01", NOT),
    "neighbour: an amount of two types": (control, amount({"N": "10000", "S": "10000"}), "L01", NOT),
    "neighbour: an amount in other digits": (control, amount({"N": "\u0661\u0660"}), "L01", NOT),
    "a start that stands there twice": (treatment, start_twice, "E01 E02 E03 G02 G04", FAIL),
    "a journal page that stands there twice": (
        treatment,
        journal_page_again,
        "E01 E02 E03 G01 G02 G04 G05 R04",
        FAIL,
    ),
    "REQUEST of another refund": (
        control,
        lambda docs: entry(docs, CONTROL, "REQUEST").update(refund_request_id={"S": "another"}),
        "G07",
        NOT,
    ),
    "the barrier of another trial": (
        idempotent,
        lambda docs: docs[TREATMENT + "journal.jsonl"][1]["response"]["Item"].update(trial_id={"S": "t"}),
        "G01",
        NOT,
    ),
    "an error beside the barrier's answer": (control, barrier_error_beside, "R03", NOT),
    "a projected barrier": (control, projected_barrier, "R06", NOT),
    "a dispatch of no delivery": (
        control,
        lambda docs: event(docs, CONTROL, "dispatch_started").update(
            caused_by={"S": "control-conventional-e1"}
        ),
        "V03",
        NOT,
    ),
    "a message that was not sent": (control, never_sent, "V03", NOT),
    "refused and committed": (control, refused_and_committed, "G09", NOT),
    "one late sample, three times": (
        control,
        samples(lambda lines: [{**line, "at_ms": 10**15 + 1} for line in lines[:2]] * 3),
        "Q01",
        NOT,
    ),
    "one sample as three pages": (
        control,
        samples(lambda lines: [{**line, "page": n} for n in (1, 2, 3) for line in lines[:2]]),
        "R03",
        NOT,
    ),
    "a sample that says there is more": (
        control,
        samples(lambda lines: [*lines[:-1], {**lines[-1], "marker_out": "more"}]),
        "R04",
        NOT,
    ),
    "the last samples first": (control, samples(late_first), "Q06", NOT),
    "an execution that became a string": (durable, garbled_execution, "H02", NOT),
    "a version that became a string": (durable, garbled_version, "H01", NOT),
    "a page of versions without versions": (
        durable,
        lambda docs: add(docs, second_page(read(docs, "versions"))),
        "H01",
        NOT,
    ),
    "a history event that became a string": (durable, history_events(lambda e: e.insert(2, "x")), "H04", NOT),
    "a page of history without events": (
        durable,
        lambda docs: add(docs, second_page(read(docs, "history"))),
        "H04",
        NOT,
    ),
    "the history of a hidden execution": (durable, hidden_history, "H02", NOT),
    "an execution that no listing shows": (durable, listed_nowhere, "H02", NOT),
    "an input with two trial ids": (durable, two_trial_ids, "H06", NOT),
    "a page after the last": (durable, page_after_the_last, "H02 R04", NOT),
    "a message with two requests": (control, two_requests, "V03", NOT),
    "a mapping of one of two queues": (control, one_of_two_queues, "K08 V05", NOT),
    "a mapping of a queue or a literal": (
        control,
        perhaps("EventSourceArn", "arn:aws:sqs:us-east-1:000000000000:other.fifo"),
        "K08 V05",
        NOT,
    ),
    "a mapping of the function or another": (
        control,
        perhaps("FunctionName", {"Ref": "Provider"}),
        "K08 V05",
        NOT,
    ),
    "a function that may not exist": (control, conditional("Conventional"), "K08 V05", NOT),
    "a queue that may not exist": (control, conditional("ConventionalQueue"), "K08 V05", NOT),
    "a scenario without a trial": (control, in_run(scenarios=["COMMIT_THEN_TIMEOUT", "CONTROL"]), "K06", NOT),
    "a planned cell without a trial": (
        control,
        in_run(planned=[{"scenario": "CONTROL", "variant": v} for v in ("conventional", "durable")]),
        "K06",
        NOT,
    ),
}
