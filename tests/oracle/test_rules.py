"""Rules on tiny histories, where neither a case nor a bad package says it: sane and pathological."""

from __future__ import annotations

import copy

import pytest

from oracle.ledger import Ledger
from oracle.verdict import merge
from tests.oracle import bad_stories as stories
from tests.oracle.asking import event, found, idempotent
from tests.oracle.builder import Trial, control, package_with, treatment
from tests.oracle.frozen import CONTROL, typed
from tests.oracle.memory import codes, judge


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
