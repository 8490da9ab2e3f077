"""Rules on tiny histories, where neither a case nor a bad package says it: sane and pathological."""

from __future__ import annotations

import copy

import pytest

from oracle.ledger import Ledger
from oracle.verdict import merge
from tests.oracle import bad_stories as stories
from tests.oracle.builder import CONTROL, Trial, control, package_with, treatment, typed
from tests.oracle.memory import codes, judge


def idempotent(package):
    return treatment(package, trial_id="t", idempotent=True)


def found(package):
    report = judge(package)
    return report.trials[0].verdict, report.trials[0].validity, codes(report)


def events(package, trial_id="t"):
    return package.docs[f"trials/{trial_id}/journal.jsonl"][0]["response"]["Items"]


def event(package, name, trial_id="t"):
    return next(item for item in events(package, trial_id) if item.get("type") == {"S": name})


# -- merging -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "verdicts, merged",
    [
        ([], "indeterminate"),
        (["pass"], "pass"),
        (["pass", "pass"], "pass"),
        (["pass", "indeterminate"], "indeterminate"),
        (["indeterminate", "fail", "pass"], "fail"),
        (["pass", "weird"], "indeterminate"),
    ],
)
def test_fail_over_indeterminate_over_pass(verdicts, merged):
    assert merge(verdicts) == merged


# -- the chain of the treatment -----------------------------------------------------------------------
def test_a_release_that_cites_another_event_is_named():
    package = package_with(idempotent)
    event(package, "release_signalled")["caused_by"] = event(package, "provider_commit_confirmed")["event_id"]
    verdict, validity, names = found(package)
    assert (verdict, validity) == ("indeterminate", "invalid") and "V12" in names


def test_a_released_response_that_cites_another_event_is_named():
    package = package_with(idempotent)
    event(package, "response_released")["caused_by"] = event(package, "caller_timeout_recorded")["event_id"]
    verdict, validity, names = found(package)
    assert (verdict, validity) == ("indeterminate", "invalid") and "V12" in names


@pytest.mark.parametrize(
    "name", ["state", "held_dispatch_event_id", "held_event_id", "release_event_id", "armed_event_id"]
)
def test_every_member_of_the_barrier_item_has_to_agree(name):
    package = package_with(idempotent)
    package.docs["trials/t/journal.jsonl"][1]["response"]["Item"][name] = {"S": "other"}
    assert found(package)[2] == {"V12"}


def test_another_deadline_than_the_protocols_is_named():
    package = package_with(idempotent)
    event(package, "caller_timeout_recorded")["detail"]["M"]["deadline_ms"] = {"N": "1000"}
    assert found(package)[2] == {"V13"}


def test_clock_order_is_never_taken_for_sequence_order():
    """By every clock the timeout is before the commit; by sequence it is after."""
    package = package_with(idempotent)
    for name, at_ms in (
        ("provider_commit_confirmed", "1790000000900"),
        ("caller_timeout_recorded", "1790000000100"),
    ):
        event(package, name)["at_ms"] = {"N": at_ms}
    assert found(package)[:2] == ("pass", "valid")


def test_a_scheduled_durable_retry_is_a_possible_retry():
    def story(package):
        trial = stories.no_retry(package)
        trial.variant = "durable"
        return trial

    package = package_with(story)
    assert found(package)[0] == "pass"
    for item in package.docs["trials/bad/durable.jsonl"][-1]["response"]["Events"]:
        item.pop("StepFailedDetails", None)
    assert found(package)[2] == {"V15"}


# -- the journal ---------------------------------------------------------------------------------------
def test_a_cause_that_nobody_recorded_is_named():
    package = package_with(idempotent)
    event(package, "delivery_received")["caused_by"] = {"S": "nothing"}
    assert found(package)[::2] == ("indeterminate", {"G04"})


def test_a_cause_that_comes_later_is_named():
    package = package_with(idempotent)
    event(package, "delivery_received")["caused_by"] = event(package, "trial_closed")["event_id"]
    assert found(package)[::2] == ("indeterminate", {"G04"})


def test_an_event_after_the_end_is_named():
    def story(package):
        trial = treatment(package, trial_id="t", idempotent=True)
        trial.event("release", "release_refused", attempt=1)
        return trial

    assert found(package_with(story))[::2] == ("indeterminate", {"G05"})


def test_an_item_of_another_trial_is_not_read():
    package = package_with(idempotent)
    event(package, "message_sent")["trial_id"] = {"S": "other"}
    assert found(package)[0] == "indeterminate" and "G01" in found(package)[2]


def test_a_row_of_another_trial_is_no_effect_of_this_one():
    package = package_with(control)
    for line in package.docs["trials/control-conventional/ledger.jsonl"]:
        row = {**line["response"]["Items"][0], "transaction_id": {"S": "txn-2"}, "trial_id": {"S": "other"}}
        line["response"] = {"Items": [*line["response"]["Items"], row], "Count": 2}
    assert found(package)[::2] == ("indeterminate", {"L01"})


# -- the ledger ----------------------------------------------------------------------------------------
def test_a_transaction_that_vanishes_between_snapshots_is_no_pass():
    package = package_with(control)
    lines = package.docs["trials/control-conventional/ledger.jsonl"]
    first, last = copy.deepcopy(lines)
    extra = {**first["response"]["Items"][0], "transaction_id": {"S": "gone"}, "status": {"S": "FAILED"}}
    first["response"] = {"Items": [*first["response"]["Items"], extra], "Count": 2}
    package.docs["trials/control-conventional/ledger.jsonl"] = [
        first,
        {**last, "read": "ledger_snapshot_2"},
        {**copy.deepcopy(last), "read": "ledger_snapshot_3"},
    ]
    assert found(package)[2] == {"L03"}


def test_a_second_effect_seen_in_an_earlier_snapshot_only_is_a_fail():
    package = package_with(control)
    first = package.docs["trials/control-conventional/ledger.jsonl"][0]
    extra = {**first["response"]["Items"][0], "transaction_id": {"S": "gone"}}
    first["response"] = {"Items": [*first["response"]["Items"], extra], "Count": 2}
    assert found(package)[0] == "fail"


@pytest.mark.parametrize("snapshot", [0, 1])
def test_an_amount_that_two_reads_contradict_is_not_judged(snapshot):
    package = package_with(control)
    lines = package.docs["trials/control-conventional/ledger.jsonl"]
    lines[snapshot]["response"]["Items"][0]["amount_minor"] = typed(1)
    assert found(package)[::2] == ("indeterminate", {"L03"})


def test_a_row_added_by_hand_after_the_trial_is_a_fail():
    package = package_with(control)
    for line in package.docs["trials/control-conventional/ledger.jsonl"]:
        row = {**line["response"]["Items"][0], "transaction_id": {"S": "by-hand"}}
        line["response"] = {"Items": [*line["response"]["Items"], row], "Count": 2}
    verdict, _, names = found(package)
    assert verdict == "fail" and {"E01", "E02", "E03", "L04"} == names


def test_a_commit_that_is_not_in_the_ledger_is_no_pass():
    def story(package):
        trial = stories.two_effects(package)
        trial.rows.pop()
        return trial

    assert found(package_with(story))[::2] == ("indeterminate", {"L04"})


def test_an_answer_that_names_no_transaction_of_the_ledger_is_no_pass():
    package = package_with(idempotent)
    event(package, "response_received")["transaction_id"] = {"S": "txn-2"}
    assert found(package)[::2] == ("indeterminate", {"L04"})


def test_an_empty_ledger_has_no_effects():
    assert Ledger().effects() == []


def test_an_unreadable_line_in_the_diagnostics_bars_a_pass():
    package = package_with(control)
    package.docs["trials/control-conventional/logs.jsonl"] = b""
    assert found(package)[0] == "pass"
    package.docs["trials/control-conventional/logs.jsonl"] = b'{"half":'
    assert found(package)[::2] == ("indeterminate", {"J04"})


# -- a package that is not sound ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "path, steps, value",
    [
        ("run.json", ("protocol_sha256",), "0" * 64),
        ("environment.json", ("stack", "outputs", "ProtocolSha256"), "0" * 64),
        ("environment.json", ("target",), "aws"),
        ("run.json", ("grade",), "aws"),
    ],
)
def test_no_trial_of_an_unsound_package_passes(path, steps, value):
    package = package_with(control)
    node = package.docs[path]
    for step in steps[:-1]:
        node = node[step]
    node[steps[-1]] = value
    report = judge(package)
    assert (report.verdict, report.trials[0].verdict, report.trials[0].validity) == ("indeterminate",) * 3


def test_a_trial_that_calls_itself_a_probe_is_not_spared():
    package = package_with(treatment)
    package.docs["trials/treatment-conventional/trial.json"]["kind"] = "probe"
    assert found(package)[0] == "fail"
    del package.docs["run.json"]
    assert "fail" in {trial.verdict for trial in judge(package).trials}


def test_a_failing_trial_that_run_json_hides_still_fails():
    package = package_with(control, treatment)
    package.docs["run.json"]["trials"].pop()
    assert judge(package).verdict == "fail"
    package.docs["run.json"]["probe"] = "treatment-conventional"
    assert judge(package).verdict == "fail"


def test_a_probe_without_the_treatment_proves_nothing():
    package = package_with(control)
    probe = control(package, trial_id="probe-1")
    probe.kind = "probe"
    probe.events[1]["type"], probe.events[2]["type"] = "probe_invoked", "delivery_received"
    probe.events[2].update(source="caller", receive_count=1, lambda_request_id="r")
    for name, document in probe.documents().items():
        package.docs[f"trials/probe-1/{name}"] = document
    assert found(package) == ("indeterminate", "indeterminate", {"K08"})


def test_an_invalid_probe_bars_the_packages_pass():
    package = package_with(control)
    event(package, "caller_timeout_recorded", "probe-1")["elapsed_ms"] = {"N": "1"}
    assert (judge(package).verdict, codes(judge(package))) == ("indeterminate", {"K08", "V13"})
    package = package_with(control)
    package.docs["trials/probe-1/trial.json"]["driver"]["source_queue_receives"] = 1
    assert (judge(package).verdict, codes(judge(package))) == ("indeterminate", {"K08", "V07"})


def test_an_unknown_variant_is_not_proven():
    from tests.oracle.protocols import REHEARSAL_TOML

    toml = REHEARSAL_TOML.replace(
        'scenario = "CONTROL"\nvariant = "conventional"', 'scenario = "CONTROL"\nvariant = "other"'
    )
    package = package_with(control, protocol_toml=toml)
    package.docs["run.json"]["trials"][0]["variant"] = "other"
    package.docs["trials/control-conventional/trial.json"]["variant"] = "other"
    assert found(package)[0] == "indeterminate" and "V05" in found(package)[2]


# -- the message -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "old, new",
    [
        ('"approved_minor":10000', '"approved_minor":10000.0'),
        ('"request"', '"scenario":"CONTROL","request"'),
        ("{", "["),
    ],
)
def test_the_body_is_the_request_and_nothing_else(old, new):
    package = package_with(control)
    message = package.docs["trials/control-conventional/trial.json"]["message"]
    message["body"] = message["body"].replace(old, new, 1)
    assert found(package)[2] == {"V03"}


def test_a_delivery_of_another_message_is_named():
    def story(package):
        trial = Trial(package, "t", CONTROL, "conventional")
        trial.open()
        trial.message_id = "another"
        dispatch = trial.dispatch()
        trial.finish(trial.answer(dispatch, trial.commit(dispatch)))
        trial.message_id = "msg-t"
        return trial.close()

    assert found(package_with(story))[2] == {"V03"}


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
    package.docs[QUEUES].append({**package.docs[QUEUES][0], "at_ms": 1})
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
