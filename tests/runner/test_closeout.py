"""The close-out: the same runs give the same bytes, open rows say so, nothing excluded is left out."""

from dataclasses import replace

import pytest

from runner.cli import main
from runner.runs.history import history
from runner.study.closeout import render
from tests.runner.pasts import REHEARSAL, cells, judge_folder, package, write_run

REGISTRATION = ["`study-1-rehearsal-20261129T120000Z.json`, not time-stamped."]


@pytest.fixture
def runs(tmp_path):
    write_run(tmp_path, "r1", "probe", package("probe", ()), started_at_ms=1_790_000_000_000)
    write_run(tmp_path, "r2", "validate", started_at_ms=1_790_000_100_000)
    write_run(tmp_path, "r3", "canonical", package("canonical", cells()[:2]), started_at_ms=1_790_000_200_000)
    write_run(tmp_path, "r4", "canonical", started_at_ms=1_790_000_300_000)
    return tmp_path


def closeout(runs, protocol=REHEARSAL):
    return render(protocol, history(runs), REGISTRATION, judge_folder)


def rows(text, grade):
    return [line.split(" | ")[1:7] for line in text.splitlines() if line.startswith(f"| {grade} |")]


def test_the_same_runs_give_the_same_bytes(runs):
    assert closeout(runs) == closeout(runs)


def test_the_result_is_the_articles_table_and_the_aws_rows_are_open(runs):
    text = closeout(runs)
    assert rows(text, "emulated") == [
        ["CONTROL", "conventional", "1", "R$ 100.00", "pass", "valid"],
        ["CONTROL", "durable", "1", "R$ 100.00", "pass", "valid"],
        ["COMMIT_THEN_TIMEOUT", "conventional", "2", "R$ 200.00", "fail", "valid"],
        ["COMMIT_THEN_TIMEOUT", "durable", "2", "R$ 200.00", "fail", "valid"],
    ]
    assert [row[2:] for row in rows(text, "aws")] == [["open"] * 4] * 4
    assert "**Open:** there is no usable canonical package of grade `aws`" in text
    assert "grade `emulated`; its rows" not in text


def test_every_run_is_there_and_each_excluded_one_has_its_reason(runs):
    text = closeout(runs)
    assert "4 runs, 1 of them excluded, each with its reason." in text
    for run in history(runs):
        assert run.package_id in text and f"| {run.run_id} |" in text
    assert "2 of 4 planned trials were begun; its probe is valid" in text


def test_it_says_what_is_proven_what_is_attested_and_what_deviates(runs):
    text = closeout(runs)
    for heading in ("What a reader can prove from bytes", "What is only attested", "Deviations", "Limits"):
        assert f"\n## {heading}\n" in text
    assert "The protocol is a rehearsal" in text
    assert "Emulated: the target was the local cloud: " in text
    assert "Run without a known commit: " in text
    assert REGISTRATION[0] in text


def test_without_any_run_everything_is_open(tmp_path):
    text = closeout(tmp_path)
    assert "There is no run of this protocol." in text
    assert text.count("**Open:**") == 2


def test_a_verdict_that_is_no_longer_the_oracles_is_a_deviation(runs):
    def stricter(path):
        told = judge_folder(path)
        for trial in told["trials"]:
            trial["verdict"] = "indeterminate"
        return told

    text = render(REHEARSAL, history(runs), REGISTRATION, stricter)
    assert "Judged otherwise now than when it was frozen: " in text


def test_runs_of_another_protocol_are_not_this_studys(runs):
    other = replace(REHEARSAL, study=replace(REHEARSAL.study, name="study-2"))
    assert "There is no run of this protocol." in closeout(runs, other)


def test_the_command_asks_the_oracle_and_writes_no_path_of_this_machine(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SUC_RUNS_DIR", str(runs))
    out = tmp_path / "STUDY.md"
    command = ["closeout", "--protocol", "study-1-rehearsal"]
    assert main([*command, "--out", str(out)]) == 0
    assert main(command) == 0
    told = capsys.readouterr().out
    assert out.read_text() == told
    assert str(runs) not in told
