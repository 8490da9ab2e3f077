"""The cases of CASES.md that the oracle handles, each as tiny histories: input, right answer."""

from __future__ import annotations

import copy
import json

import pytest

from oracle.cli import main
from oracle.rules import REGISTRY
from oracle.verdict import merge
from tests.oracle import bad_stories as stories
from tests.oracle.builder import (
    CONTROL,
    Package,
    Trial,
    control,
    encode,
    package_with,
    probe,
    reindex,
    treatment,
    typed,
)
from tests.oracle.memory import codes, judge, judge_damaged
from tests.oracle.protocols import REHEARSAL_TOML


def trial_of(package):
    return judge(package).trials[0]


def judged(story, toml=REHEARSAL_TOML):
    return trial_of(package_with(story, protocol_toml=toml))


def idempotent(package):
    return treatment(package, idempotent=True)


def changed(story, change, variant="conventional"):
    """The verdict of a story after a change of its documents by file name."""
    package = package_with(story)
    folder = next(path.rsplit("/", 1)[0] for path in package.docs if path.endswith("queues.jsonl"))
    change({path.rsplit("/", 1)[1]: doc for path, doc in package.docs.items() if path.startswith(folder)})
    return trial_of(package)


# -- D01 a timeout is unknown ------------------------------------------------------------------
def test_d01_a_timeout_with_one_effect_passes_and_the_belief_stays_unknown():
    trial = judged(idempotent)
    assert (trial.verdict, trial.ledger_transactions, trial.effect_knowledge) == ("pass", 1, "UNKNOWN")
    assert trial.belief["effect_knowledge"] == "UNKNOWN"


def test_d01_a_timeout_without_the_ledger_is_indeterminate():
    package = package_with(idempotent)
    del package.docs["trials/treatment-conventional/ledger.jsonl"]
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


# -- D21 in process is not done and not failed ---------------------------------------------------------
def rows(*statuses, amount=10_000):
    """A CONTROL whose ledger holds one row per status; only the first is a commit of the journal."""

    def add(docs):
        for line in docs["ledger.jsonl"]:
            (row,) = line["response"]["Items"]
            line["response"]["Items"] = [
                {
                    **row,
                    "transaction_id": {"S": f"txn-{n}"},
                    "status": {"S": status},
                    "amount_minor": typed(amount),
                }
                for n, status in enumerate(statuses, 1)
            ]
            line["response"]["Count"] = len(statuses)

    return changed(control, add)


def test_d21_one_pending_transaction_is_indeterminate():
    trial = rows("PENDING")
    assert (trial.verdict, trial.ledger_transactions) == ("indeterminate", 0)


def test_d21_one_failed_and_one_settled_are_exactly_one_effect():
    assert rows("SUCCEEDED", "FAILED").verdict == "pass"


def test_d21_two_pending_that_could_exceed_the_captured_amount_are_flagged_not_failed():
    trial = rows("PENDING", "PENDING", amount=6_000)
    assert trial.verdict == "indeterminate" and [f.code for f in trial.findings].count("L06") == 2


def test_d21_an_unknown_status_is_indeterminate():
    assert rows("SUCCEEDED", "EM_PROCESSAMENTO").verdict == "indeterminate"


# -- D22 "not found" is a time-stamped fact ---------------------------------------------------------------
def test_d22_no_effect_while_a_call_may_still_commit_is_indeterminate():
    def story(package):
        trial = Trial(package, "early", CONTROL, "conventional")
        trial.open()
        trial.timeout(trial.dispatch())
        return trial.close()

    trial = judged(story)
    assert (trial.verdict, trial.ledger_transactions) == ("indeterminate", 0)


def test_d22_no_effect_in_a_complete_quiescent_trial_is_a_fail():
    trial = judged(stories.refused)
    assert (trial.verdict, trial.processing, trial.correct_completion) == ("fail", "PROVIDER_REFUSED", False)


def test_d22_no_effect_of_a_dead_lettered_request_is_a_fail():
    def story(package):
        trial = Trial(package, "dead", CONTROL, "conventional")
        trial.open()
        dispatch = trial.dispatch()
        trial.event(
            "caller", "attempt_failed", caused_by=dispatch["event_id"], detail={"code": "INVALID_REQUEST"}
        )
        trial.state["effect_knowledge"] = "KNOWN"
        return trial.close()

    def dead(docs):
        for line in docs["queues.jsonl"]:
            if line["read"] == "queue_dlq":
                line["response"]["Attributes"]["ApproximateNumberOfMessages"] = "1"

    assert judged(story).verdict == "indeterminate"
    trial = changed(story, dead)
    assert (trial.verdict, trial.processing) == ("fail", "DEAD_LETTERED")


def test_d22_no_effect_of_a_request_that_nobody_dispatched_is_no_verdict():
    def story(package):
        trial = Trial(package, "never", CONTROL, "conventional")
        trial.open()
        return trial.close()

    def dead(docs):
        for line in docs["queues.jsonl"]:
            if line["read"] == "queue_dlq":
                line["response"]["Attributes"]["ApproximateNumberOfMessages"] = "1"

    assert changed(story, dead).verdict == "indeterminate"


# -- D23 the sum per payment -----------------------------------------------------------------------------
def test_d23_the_sum_over_the_payment_counts_not_the_sum_over_the_request():
    toml = REHEARSAL_TOML.replace("approved_minor = 10000", "approved_minor = 6000")

    def story(package):
        trial = stories.two_effects(package)
        trial.rows[1]["refund_request_id"] = "ref-other"
        return trial

    found = {f.code: f for f in judged(story, toml).findings}
    assert found["E02"].witness["refunded_minor"] == 12_000
    within = REHEARSAL_TOML.replace("approved_minor = 10000", "approved_minor = 5000")
    assert "E02" not in {f.code for f in judged(story, within).findings}


# -- D24 minor units and currency ----------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, value, code",
    [
        ("currency", "USD", "E03"),
        ("amount_minor", 9_999, "E03"),
        ("amount_minor", 10_001, "E02"),
        ("refund_request_id", "other", "E03"),
        ("payment_id", "other", "E03"),
    ],
)
def test_d24_another_currency_or_amount_is_a_fail(name, value, code):
    def change(docs):
        for line in docs["ledger.jsonl"]:
            line["response"]["Items"][0][name] = typed(value)

    trial = changed(control, change)
    assert trial.verdict == "fail" and code in {f.code for f in trial.findings}


@pytest.mark.parametrize("text", ["19.99", "1e4", "010000", "+10000", " 10000", "١٠٠٠٠", ""])
def test_d24_an_amount_that_is_no_canonical_integer_is_no_amount(text):
    def change(docs):
        for line in docs["ledger.jsonl"]:
            line["response"]["Items"][0]["amount_minor"] = {"N": text}

    trial = changed(control, change)
    assert trial.verdict == "indeterminate" and {f.code for f in trial.findings} == {"L01"}


def test_d24_a_float_amount_in_a_document_is_refused():
    files = package_with(control).render()
    path = "trials/control-conventional/trial.json"
    damaged = {**files, path: files[path].replace(b'"approved_minor":10000', b'"approved_minor":100.00')}
    assert "J09" in codes(judge_damaged(damaged))


# -- D25 snapshots --------------------------------------------------------------------------------------
def test_d25_a_page_with_a_key_and_no_next_page_is_indeterminate():
    def cut(docs):
        record = docs["ledger.jsonl"][1]
        key = {"trial_id": {"S": "x"}, "transaction_id": {"S": "y"}}
        record["response"]["LastEvaluatedKey"] = record["marker_out"] = key

    trial = changed(control, cut)
    assert trial.verdict == "indeterminate" and {f.code for f in trial.findings} == {"R04"}


def test_d25_snapshots_through_an_index_or_a_filter_are_refused():
    for name in ("IndexName", "FilterExpression", "ProjectionExpression", "Select"):
        trial = changed(
            control, lambda docs, name=name: docs["ledger.jsonl"][0]["request"].update({name: "x"})
        )
        assert {f.code for f in trial.findings} == {"R06"}, name


# -- D26, D27 packaging ------------------------------------------------------------------------------------
def test_d26_a_missing_an_extra_and_an_unlisted_file_break_integrity():
    files = package_with(control).render()
    without = {path: data for path, data in files.items() if not path.endswith("queues.jsonl")}
    assert codes(judge(without)) == {"P10"}
    assert codes(judge({**files, "notes.txt": b"x"})) == {"P11"}


def test_d26_an_edited_file_with_its_index_is_another_package():
    files = package_with(control).render()
    edited = reindex({**files, "run.json": files["run.json"].replace(b"run-1", b"run-2")})
    assert judge(files).identity != judge(edited).identity


@pytest.mark.parametrize(
    "new, code",
    [
        (b'"amount_minor":{"N":"10000"},"amount_minor":{"N":"1"}', "J07"),
        (b'"amount_minor":{"N":"10000","N":"10000"}', "J07"),
        (b'"amount_minor":NaN', "J08"),
        (b'"amount_minor":Infinity', "J08"),
        (b'"amount_minor":1e2', "J09"),
        (b'"amount_minor":{"N":"10000\\u0030"}', "J12"),
        (b'"amount_minor":{"N": "10000"}', "J12"),
    ],
)
def test_d27_a_malformed_ledger_line_is_never_read_either_way(new, code):
    files = package_with(control).render()
    path = "trials/control-conventional/ledger.jsonl"
    report = judge_damaged({**files, path: files[path].replace(b'"amount_minor":{"N":"10000"}', new)})
    assert (report.verdict, codes(report)) == ("indeterminate", {code})


def test_d27_half_a_last_line_is_a_killed_writer_not_the_end():
    files = package_with(lambda p: control(p)).render()
    path = "trials/control-conventional/queues.jsonl"
    for cut in (1, 2, 30):
        report = judge_damaged({**files, path: files[path][:-cut]})
        assert (report.verdict, codes(report)) == ("indeterminate", {"J04"}), cut


# -- D31 clocks --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shift_ms", [-10_000, 10_000])
@pytest.mark.parametrize("story, verdict", [(control, "pass"), (idempotent, "pass"), (treatment, "fail")])
def test_d31_a_shifted_provider_clock_changes_no_verdict(shift_ms, story, verdict):
    def shift(docs):
        for item in docs["journal.jsonl"][0]["response"]["Items"]:
            if item.get("source") == {"S": "provider"}:
                item["at_ms"] = {"N": str(int(item["at_ms"]["N"]) + shift_ms)}

    trial = changed(story, shift)
    assert (trial.verdict, trial.validity) == (verdict, "valid")
    assert [f.code for f in trial.findings if f.severity == "note"] == ["N01"]


def test_d31_snapshots_that_look_early_by_the_clock_are_noted_only():
    def early(docs):
        for line in docs["ledger.jsonl"]:
            line["at_ms"] = 1

    trial = changed(control, early)
    assert (trial.verdict, [f.code for f in trial.findings]) == ("pass", ["N01"])


def test_findings_name_the_smallest_witness():
    finding = next(f for f in judged(treatment).findings if f.code == "E01")
    assert finding.witness == {
        "path": "trials/treatment-conventional/ledger.jsonl",
        "pointer": "/2/response/Items/1",
        "transactions": ["txn-1", "txn-2"],
        "seqs": [8, 15],
    }
    assert json.loads(json.dumps(finding.as_json()))["severity"] == "violation"


def test_one_trial_encodes_as_the_format_says():
    assert encode({"b": 1, "a": "é"}) == '{"a":"é","b":1}\n'.encode()
