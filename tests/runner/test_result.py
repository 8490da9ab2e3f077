"""The result document and its exit code: every number is the oracle's, none is ours."""

from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from runner.commands.run import conclude_and_show
from runner.runs import result
from runner.runs.freeze import Package


def trial(number, **changes):
    return {
        "trial_id": f"r-t{number}",
        "scenario": "CONTROL",
        "variant": "durable",
        "ledger_transactions": 1,
        "refunded_minor": 10000,
        "currency": "BRL",
        "verdict": "pass",
        "validity": "valid",
        "processing": "SUCCEEDED",
        "effect_knowledge": "KNOWN",
        "correct_completion": True,
        "findings": [],
        **changes,
    }


def a_run(planned):
    return SimpleNamespace(
        run_id="r",
        stage="run",
        protocol=SimpleNamespace(name="study-1"),
        cells=[None] * planned,
        timing_s={"total": 1.0},
        floor_s=lambda: 0.5,
    )


def document(*trials, planned=None, probe="valid"):
    run = a_run(len(trials) if planned is None else planned)
    verdict = {
        "verdict": "pass",
        "target": "local",
        "grade": "emulated",
        "probe": probe and {"validity": probe},
        "trials": list(trials),
    }
    made = result.document(run, Package(Path("p"), "0" * 64), verdict)
    return made, result.exit_code(run, made)


def test_a_trial_has_the_number_that_the_oracle_gives_it_whichever_started_first():
    made, _ = document(trial(1), trial(4, variant="durable"), trial(3, variant="conventional"))
    assert [t["trial_id"] for t in made["trials"]] == ["r-t1", "r-t4", "r-t3"]
    numbers, _, variants, *_ = (list(column.cells) for column in result.table(made).columns)
    assert (numbers, variants) == (["1", "2", "3"], ["durable", "durable", "conventional"])


@pytest.mark.parametrize(
    ("trials", "planned", "code"),
    [
        ([trial(1), trial(2, verdict="fail")], None, 0),
        ([trial(1, validity="invalid", verdict="fail")], None, 2),
        ([trial(1, verdict="indeterminate")], None, 2),
        ([trial(1)], 2, 2),
        ([], 2, 2),
        ([], 0, 0),
    ],
)
def test_exit_0_means_every_planned_trial_ran_and_is_valid_whatever_the_verdict(trials, planned, code):
    assert document(*trials, planned=planned)[1] == code


@pytest.mark.parametrize("probe", ["invalid", "indeterminate", None])
def test_without_a_valid_probe_nothing_is_clean(probe):
    assert document(trial(1), probe=probe)[1] == 2
    assert document(probe=probe)[1] == 2


@pytest.mark.parametrize(
    ("minor", "currency", "shown"),
    [
        (10000, "BRL", "R$ 100.00"),
        (5, "BRL", "R$ 0.05"),
        (500, "JPY", "JPY 500"),
        (1000, "KWD", "KWD 1.000"),
        (None, "BRL", "?"),
        (7, "XXX", "7 minor units XXX"),
        (None, None, "?"),
    ],
)
def test_d24_money_is_shown_with_its_currencys_exponent(minor, currency, shown):
    assert result.money(minor, currency) == shown


def test_the_table_fits_80_columns_with_every_value_whole():
    made, _ = document(
        trial(1, scenario="COMMIT_THEN_TIMEOUT", variant="conventional", validity="indeterminate"),
        trial(2, refunded_minor=20000, verdict="indeterminate"),
    )
    console = Console(width=80, record=True, file=StringIO())
    console.print(result.table(made))
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= 80
    for value in ("COMMIT_THEN_TIMEOUT", "conventional", "R$ 200.00", "indeterminate"):
        assert value in shown
    assert result.beliefs(made)[1] == (
        "2: the system reports SUCCEEDED; its knowledge of the effect is KNOWN; correct completion: true"
    )


def test_a_run_without_trials_prints_no_table_and_the_command_to_judge_as_it_can_be_typed(capsys):
    told = {"verdict": "pass", "target": "local", "grade": "emulated", "probe": None, "trials": []}
    run = SimpleNamespace(**vars(a_run(0)), conclude=lambda _result: None)
    run.cells = [None]  # interrupted before its first trial: no table of nothing
    conclude_and_show(SimpleNamespace(json=False), run, Package(Path("p"), "0" * 64), told)
    shown = capsys.readouterr().out
    assert shown.startswith("transport probe: none\n")
    assert "judge it yourself: uv run python -m oracle judge p\n" in shown
