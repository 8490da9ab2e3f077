"""The cases of CASES.md that the oracle handles, D21 to D31, as tiny histories: input, right answer."""

from __future__ import annotations

import json

import pytest

from tests.oracle import bad_stories as stories
from tests.oracle.asking import changed, idempotent, judged
from tests.oracle.builder import Trial, control, package_with, treatment
from tests.oracle.frozen import CONTROL, encode, reindex, typed
from tests.oracle.memory import codes, judge, judge_damaged
from tests.oracle.protocols import REHEARSAL_TOML


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
            line["response"].update(Count=len(statuses), ScannedCount=len(statuses))

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
