"""Reads on tiny histories: pages and markers, queries, durable listings and histories, queue samples."""

from __future__ import annotations

import copy

import pytest

from tests.oracle.asking import found
from tests.oracle.builder import control, package_with
from tests.oracle.memory import codes, judge


# -- reads -------------------------------------------------------------------------------------------------
def pages(package, path, number):
    """Split one Query record in two true pages."""
    lines = package.docs[path]
    record = lines.pop(number)
    items, key = record["response"]["Items"], {"trial_id": {"S": "t"}, "entry": {"S": "x"}}
    first = {
        **record,
        "response": {"Items": items[:1], "Count": 1, "LastEvaluatedKey": key},
        "marker_out": key,
    }
    request = {**record["request"], "ExclusiveStartKey": key}
    second = {**record, "page": 2, "marker_in": key, "request": request}
    second["response"] = {"Items": items[1:], "Count": len(items) - 1}
    lines[number:number] = [first, second]
    return first, second


JOURNAL = "trials/control-conventional/journal.jsonl"


def test_a_journal_in_two_true_pages_is_whole():
    package = package_with(control)
    pages(package, JOURNAL, 0)
    assert found(package) == ("pass", "valid", set())


@pytest.mark.parametrize(
    "change",
    [
        lambda first, second: second.update(marker_in=None),
        lambda first, second: second["request"].pop("ExclusiveStartKey"),
        lambda first, second: second["request"].update(ExclusiveStartKey={"trial_id": {"S": "other"}}),
        lambda first, second: first.update(marker_out=None),
        lambda first, second: first["response"].pop("LastEvaluatedKey"),
        lambda first, second: second["response"].update(LastEvaluatedKey={"trial_id": {"S": "t"}}),
    ],
)
def test_a_marker_that_does_not_lead_to_the_next_page_is_named(change):
    package = package_with(control)
    change(*pages(package, JOURNAL, 0))
    assert found(package)[::2] == ("indeterminate", {"R04"})


def test_a_page_that_occurs_twice_and_differs_is_named():
    package = package_with(control)
    twin = copy.deepcopy(package.docs[JOURNAL][0])
    twin["response"]["ScannedCount"] = 99
    package.docs[JOURNAL].append(twin)
    assert found(package)[2] == {"R03"}


def test_names_may_stand_for_the_key():
    package = package_with(control)
    request = package.docs[JOURNAL][0]["request"]
    request.update(KeyConditionExpression="#t = :v", ExpressionAttributeNames={"#t": "trial_id"})
    request["ExpressionAttributeValues"] = {":v": {"S": "control-conventional"}}
    assert found(package)[0] == "pass"
    request["ExpressionAttributeNames"] = {"#t": "entry"}
    assert found(package)[2] == {"R06"}


@pytest.mark.parametrize("path, line", [(JOURNAL, 0), ("trials/control-conventional/ledger.jsonl", 1)])
@pytest.mark.parametrize(
    "change, code",
    [
        ({"ExpressionAttributeValues": {":trial": {"S": "other"}}}, "R06"),
        ({"ExpressionAttributeValues": {":trial": {"S": "control-conventional"}, ":x": {"S": "y"}}}, "R06"),
        ({"KeyConditionExpression": "trial_id = :trial AND seq > :x"}, "R06"),
        ({"TableName": "other"}, "R09"),
        ({"ConsistentRead": None}, "R05"),
        ({"Limit": 1000, "ScanIndexForward": True}, None),
    ],
)
def test_a_query_is_of_the_trials_own_partition_and_of_all_of_it(path, line, change, code):
    package = package_with(control)
    package.docs[path][line]["request"].update(change)
    assert found(package)[2] == ({code} if code else set())


@pytest.mark.parametrize(
    "change, code",
    [
        ({"Key": {"trial_id": {"S": "other"}}}, "R06"),
        ({"ProjectionExpression": "trial_id"}, "R06"),
        ({"ConsistentRead": False}, "R05"),
        ({"TableName": "other"}, "R09"),
    ],
)
def test_the_barrier_is_read_by_the_trials_key_consistently(change, code):
    package = package_with(control)
    package.docs[JOURNAL][1]["request"].update(change)
    assert code in found(package)[2] and found(package)[0] == "indeterminate"


def failed(record):
    return {
        **{k: v for k, v in record.items() if k != "response"},
        "error": {"code": "Throttled", "message": ""},
    }


@pytest.mark.parametrize("number", range(6))
def test_a_durable_read_that_failed_is_not_an_empty_one(number):
    def fail(lines):
        lines[number] = failed(lines[number])

    verdict, _, names = durable(fail)
    assert verdict == "indeterminate" and "R08" in names


@pytest.mark.parametrize(
    "path, line", [(JOURNAL, 0), (JOURNAL, 1), ("trials/control-conventional/ledger.jsonl", 1)]
)
def test_a_query_that_failed_is_not_an_empty_one(path, line):
    package = package_with(control)
    package.docs[path][line] = failed(package.docs[path][line])
    assert found(package)[0] == "indeterminate" and "R08" in found(package)[2]


# -- executions ------------------------------------------------------------------------------------------
def durable(change):
    package = package_with(lambda p: control(p, "durable"))
    change(package.docs["trials/control-durable/durable.jsonl"])
    return found(package)


def add_listed(lines, status):
    other = {"DurableExecutionArn": "other", "Status": status}
    lines[1]["response"]["DurableExecutions"].append(other)
    return other


def fetched(lines, payload):
    other = add_listed(lines, "RUNNING")
    record = {**copy.deepcopy(lines[4]), "of": "other", "request": {"DurableExecutionArn": "other"}}
    lines.append({**record, "response": {**other, "InputPayload": payload}})


def test_an_ended_execution_of_somebody_else_may_be_left_out():
    assert durable(lambda lines: add_listed(lines, "FAILED"))[0] == "pass"


def test_a_running_execution_must_be_shown_to_be_another_trials():
    assert durable(lambda lines: add_listed(lines, "RUNNING"))[2] == {"H03"}
    assert durable(lambda lines: fetched(lines, '{"ping":true}'))[0] == "pass"
    other = '{"Records":[{"body":"{\\"trial_id\\":\\"other\\"}"}]}'
    assert durable(lambda lines: fetched(lines, other))[0] == "pass"
    for unclear in ("", "{}", other.replace("trial_id", "id"), other.replace("]}", ',{"body":"{}"}]}')):
        verdict, _, names = durable(lambda lines, unclear=unclear: fetched(lines, unclear))
        assert verdict == "indeterminate" and "H03" in names


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_listing_is_needed(number):
    assert durable(lambda lines: lines.pop(number))[2] == {"H02"}


@pytest.mark.parametrize(
    "extra",
    [
        {"Statuses": ["SUCCEEDED"]},
        {"StartedAfter": "2026"},
        {"DurableExecutionName": "x"},
        {"Qualifier": "live"},
    ],
)
def test_a_filtered_listing_proves_nothing(extra):
    assert durable(lambda lines: lines[1]["request"].update(extra))[2] == {"H02"}


def test_a_history_read_in_reverse_or_without_its_data_is_refused():
    for change in ({"ReverseOrder": True}, {"IncludeExecutionData": False}):
        assert durable(lambda lines, change=change: lines[-1]["request"].update(change))[2] == {"H06"}


def test_a_status_and_a_last_event_that_disagree_are_refused():
    assert durable(lambda lines: lines[4]["response"].update(Status="FAILED"))[2] == {"H04"}


# -- queues ------------------------------------------------------------------------------------------------
QUEUES = "trials/control-conventional/queues.jsonl"


@pytest.mark.parametrize("name", ["", "NotVisible", "Delayed"])
@pytest.mark.parametrize("line, code", [(0, "Q02"), (5, "Q03")])
def test_every_count_of_the_settle_window_must_be_zero(name, line, code):
    package = package_with(control)
    package.docs[QUEUES][line]["response"]["Attributes"]["ApproximateNumberOfMessages" + name] = "1"
    assert found(package)[2] == {code}


def test_what_was_before_the_settle_window_does_not_matter():
    package = package_with(control)
    busy = [{**copy.deepcopy(line), "at_ms": 1} for line in package.docs[QUEUES][:2]]
    busy[0]["response"]["Attributes"]["ApproximateNumberOfMessages"] = "1"
    package.docs[QUEUES][:0] = busy
    assert found(package)[0] == "pass"


@pytest.mark.parametrize("value", [None, 0, "", "-0", "00", "0.0", "none"])
def test_a_count_that_cannot_be_read_is_not_zero(value):
    package = package_with(control)
    package.docs[QUEUES][0]["response"]["Attributes"]["ApproximateNumberOfMessages"] = value
    assert found(package)[2] == {"Q02"}


def test_samples_come_in_pairs():
    package = package_with(control)
    package.docs[QUEUES].append({**package.docs[QUEUES][-2], "at_ms": package.docs[QUEUES][-2]["at_ms"] + 1})
    assert found(package)[2] == {"Q01"}


def test_a_sample_of_another_queue_says_nothing():
    package = package_with(control)
    package.docs[QUEUES][0]["request"]["QueueUrl"] = "https://elsewhere"
    assert found(package)[2] == {"R09"}


@pytest.mark.parametrize(
    "target, grade, told",
    [("aws", "emulated", set()), ("aws", "aws", set()), ("local", "aws", {"K05"})],
)
def test_an_emulator_behind_the_aws_target_is_told_as_emulated(target, grade, told):
    package = package_with(control)
    for path in ("run.json", "environment.json"):
        package.docs[path].update(target=target, grade=grade)
    assert codes(judge(package)) == told
