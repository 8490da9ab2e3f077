"""The cases of CASES.md that the oracle handles, D01 to D15, as tiny histories: input, right answer."""

from __future__ import annotations

import copy

import pytest

from oracle.cli import main
from oracle.rules import REGISTRY
from oracle.verdict import merge
from tests.oracle import bad_stories as stories
from tests.oracle.asking import changed, idempotent, judged, trial_of
from tests.oracle.builder import Trial, control, package_with, probe, treatment
from tests.oracle.frozen import CONTROL, Package
from tests.oracle.memory import codes, judge


# -- D01 a timeout is unknown ------------------------------------------------------------------
def test_d01_a_timeout_with_one_effect_passes_and_the_belief_stays_unknown():
    trial = judged(idempotent)
    assert (trial.verdict, trial.ledger_transactions, trial.effect_knowledge) == ("pass", 1, "UNKNOWN")
    assert trial.belief["effect_knowledge"] == "UNKNOWN"


def test_d01_a_timeout_without_the_ledger_is_indeterminate():
    package = package_with(idempotent)
    del package.docs["trials/t/ledger.jsonl"]
    trial = trial_of(package)
    assert (trial.verdict, trial.ledger_transactions) == ("indeterminate", None)


def test_d01_an_intent_without_an_outcome_is_unknown_never_not_attempted():
    trial = judged(stories.call_in_flight)
    assert trial.effect_knowledge == "UNKNOWN"
    assert (trial.verdict, [f.code for f in trial.findings]) == ("indeterminate", ["G09"])


def test_d01_a_killed_caller_leaves_the_effect_unknown_whatever_follows():
    def story(package):
        trial = Trial(package, "killed", CONTROL, "conventional")
        trial.open()
        commit = trial.commit(trial.dispatch(1))
        trial.event("provider", "response_sent", attempt=1, caused_by=commit["event_id"])
        trial.finish(trial.answer(trial.dispatch(2, receive_count=2), commit))
        return trial.close()

    trial = judged(story)
    assert (trial.effect_knowledge, trial.belief["effect_knowledge"]) == ("UNKNOWN", "KNOWN")


@pytest.mark.parametrize("code, knowledge", [("INVALID_REQUEST", "KNOWN"), ("SOMETHING_NEW", "UNKNOWN")])
def test_d01_only_a_listed_code_is_definite(code, knowledge):
    def story(package):
        trial = stories.refused(package)
        refusal = next(event for event in trial.events if event["type"] == "attempt_failed")
        refusal["detail"] = {"code": code}
        return trial

    assert judged(story).effect_knowledge == knowledge


def test_d01_once_unknown_a_later_success_does_not_make_it_known():
    trial = judged(treatment)
    assert (trial.effect_knowledge, trial.processing) == ("UNKNOWN", "SUCCEEDED")


# -- D02 a witnessed violation is final ----------------------------------------------------------
def test_d02_two_effects_fail_without_the_journal():
    package = package_with(treatment)
    del package.docs["trials/treatment-conventional/journal.jsonl"]
    assert trial_of(package).verdict == "fail"


def test_d02_one_effect_with_a_provider_event_missing_is_indeterminate():
    def lose(docs):
        response = docs["journal.jsonl"][0]["response"]
        response["Items"] = [i for i in response["Items"] if i.get("source") != {"S": "provider"}]
        response["Count"] = len(response["Items"])

    assert changed(control, lose).verdict == "indeterminate"


def test_d02_two_effects_under_a_broken_digest_are_indeterminate():
    files = package_with(treatment).render()
    path = "trials/treatment-conventional/ledger.jsonl"
    report = judge({**files, path: files[path].replace(b"10000", b"10001")})
    assert (report.verdict, report.trials, codes(report)) == ("indeterminate", [], {"P14"})


def test_d02_one_eventually_consistent_sight_of_two_effects_is_final():
    def stale(docs):
        docs["ledger.jsonl"].pop()
        docs["ledger.jsonl"][0]["request"]["ConsistentRead"] = False

    assert changed(treatment, stale).verdict == "fail"


# -- D03 vacuous pass ------------------------------------------------------------------------------
def test_d03_a_treatment_that_did_not_fire_is_not_a_pass():
    trial = judged(stories.never_fired)
    assert (trial.verdict, trial.validity, trial.ledger_transactions) == ("indeterminate", "invalid", 1)


def test_d03_a_trial_in_which_nothing_happened_is_indeterminate():
    def story(package):
        trial = Trial(package, "empty", CONTROL, "conventional")
        trial.open()
        return trial.close()

    trial = judged(story)
    assert (trial.verdict, trial.ledger_transactions) == ("indeterminate", 0)


def test_d03_no_trials_and_no_rules_are_not_a_pass(monkeypatch):
    package = Package()
    package.add(probe(package))
    assert judge(package).verdict == "indeterminate"
    assert merge([]) == "indeterminate"
    monkeypatch.setattr("oracle.verdict.REGISTRY", REGISTRY[-1:])
    assert judged(control).verdict == "indeterminate"


def test_d03_a_rule_that_raises_is_reported_and_bars_a_pass(monkeypatch):
    def explode(_trial):
        raise ZeroDivisionError

    broken = tuple(r._replace(check=explode) if r.name == "trial_ended" else r for r in REGISTRY)
    monkeypatch.setattr("oracle.verdict.REGISTRY", broken)
    trial = judged(control)
    assert (trial.verdict, trial.rules["trial_ended"]) == ("indeterminate", "error: ZeroDivisionError")
    assert judged(treatment).verdict == "fail"


# -- D04 a harness failure is not a violation --------------------------------------------------------
def test_d04_a_folder_without_evidence_is_a_mistake_not_a_verdict(tmp_path, capsys):
    assert main(["judge", str(tmp_path)]) == 64
    said = capsys.readouterr()
    assert said.out == "" and "without index.json" in said.err
    assert not any(word in said.err for word in ("violat", "pass", "fail"))


def test_d04_a_trial_that_the_harness_broke_off_is_indeterminate_never_a_fail():
    def story(package):
        trial = Trial(package, "broken-off", CONTROL, "conventional")
        trial.open()
        return trial

    def error(docs):
        docs["trial.json"].update(ended_because="error", error="EndpointConnectionError", message=None)

    assert changed(story, error).verdict == "indeterminate"


def test_d04_one_pass_and_one_indeterminate_are_not_a_pass():
    assert judge(package_with(control, stories.unfinished)).verdict == "indeterminate"


# -- D05 truncated durable history -----------------------------------------------------------------
def durable(change):
    return changed(lambda p: control(p, "durable"), lambda docs: change(docs["durable.jsonl"]))


def paged(lines):
    """The history in two pages, as the service would give it."""
    whole = lines.pop()
    events, request = whole["response"]["Events"], whole["request"]
    first = {**whole, "response": {"Events": events[:2], "NextMarker": "m"}, "marker_out": "m"}
    second = {**whole, "page": 2, "marker_in": "m", "request": {**request, "Marker": "m"}}
    return first, {**second, "response": {"Events": events[2:]}}


def test_d05_two_whole_pages_are_usable():
    assert durable(lambda lines: lines.extend(paged(lines))).verdict == "pass"


def test_d05_a_marker_without_its_page_is_indeterminate():
    trial = durable(lambda lines: lines.append(paged(lines)[0]))
    assert trial.verdict == "indeterminate" and {"R04", "H04"} <= {f.code for f in trial.findings}


def test_d05_pages_swapped_or_repeated_give_the_same_verdict():
    assert durable(lambda lines: lines.extend(reversed(paged(lines)))).verdict == "pass"
    assert durable(lambda lines: lines.extend(_twice(lines))).verdict == "pass"


def _twice(lines):
    first, second = paged(lines)
    return first, second, copy.deepcopy(second), copy.deepcopy(first)


def test_d05_truncation_counts_only_where_the_field_is_needed():
    assert durable(stories.truncate_input).verdict == "indeterminate"

    def unneeded(lines):
        step = next(e for e in lines[-1]["response"]["Events"] if e["EventType"] == "StepSucceeded")
        step["StepSucceededDetails"] = {"Result": {"Truncated": True}}

    assert durable(unneeded).verdict == "pass"


# -- D08 attempt counters undercount -------------------------------------------------------------------
def test_d08_two_effects_under_one_attempt_number_fail():
    """The history shows one successful step; the attempt field says 1 twice; the ledger shows two."""

    def story(package):
        trial = Trial(package, "killed", CONTROL, "durable")
        trial.open()
        for _ in range(2):
            dispatch = trial.dispatch(1)
            commit = trial.commit(dispatch)
            trial.event("provider", "response_sent", attempt=1, caused_by=commit["event_id"])
        response = trial.answer(dispatch, commit)
        trial.finish(response)
        return trial.close()

    trial = judged(story)
    assert (trial.verdict, trial.ledger_transactions) == ("fail", 2)


def test_d08_three_requests_and_one_effect_pass():
    def story(package):
        trial, held = stories.exposed(package)
        for attempt in (2, 3):
            dispatch = trial.dispatch(attempt, receive_count=2)
            response = trial.answer(dispatch, held)
        trial.finish(response)
        return trial.close()

    trial = judged(story)
    assert (trial.verdict, trial.ledger_transactions) == ("pass", 1)


# -- D09 listings ------------------------------------------------------------------------------------
def test_d09_a_paused_execution_is_not_terminal():
    def pause(lines):
        for line in lines[1:5]:
            (line["response"].get("DurableExecutions") or [line["response"]])[0]["Status"] = "PAUSED"

    trial = durable(pause)
    assert trial.verdict == "indeterminate" and "H03" in {f.code for f in trial.findings}


def test_d09_an_execution_of_trial_10_is_not_an_execution_of_trial_1():
    def other(lines):
        payload = lines[4]["response"]["InputPayload"]
        lines[4]["response"]["InputPayload"] = payload.replace("control-durable", "control-durable0")

    assert [f.code for f in durable(other).findings] == ["H07"]


# -- D12, D15 the observer and the driver --------------------------------------------------------------
def test_d12_a_single_zero_sample_is_not_emptiness():
    assert (
        changed(control, lambda docs: docs["queues.jsonl"].__delitem__(slice(0, 4))).verdict
        == "indeterminate"
    )


def test_d12_one_zero_sample_written_three_times_is_one_sample():
    def repeat(docs):
        docs["queues.jsonl"][:] = docs["queues.jsonl"][:2] * 3

    trial = changed(control, repeat)
    assert (trial.verdict, {f.code for f in trial.findings}) == ("indeterminate", {"Q01"})


def test_d12_a_window_of_zero_samples_is():
    assert judged(control).verdict == "pass"


def test_d12_a_receive_on_the_source_queue_contaminates():
    trial = changed(control, lambda docs: docs["trial.json"]["driver"].update(source_queue_receives=1))
    assert (trial.verdict, trial.validity) == ("indeterminate", "invalid")


def test_d15_two_effects_of_a_driver_that_sent_twice_are_not_the_arms_fail():
    def story(package):
        trial = stories.two_effects(package)
        repeat = {**trial.events[1], "event_id": "bad-again"}
        trial.events.insert(2, repeat)
        for seq, event in enumerate(trial.events, 1):
            event.update(seq=seq, entry=f"EVENT#{seq:06d}")
        for row in trial.rows:
            row["seq"] += 1
        return trial

    trial = judged(story)
    assert (trial.verdict, trial.validity) == ("indeterminate", "invalid")
    assert {"E01", "V07"} <= {f.code for f in trial.findings}


def test_d13_without_the_botocore_version_a_trial_is_not_a_pass():
    package = package_with(control)
    functions = package.docs["environment.json"]["functions"]
    functions["conventional"] = {k: v for k, v in functions["conventional"].items() if k != "botocore"}
    assert judge(package).verdict == "indeterminate"
