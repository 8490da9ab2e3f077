"""Each stage stands on a sound package of the stage before; every run stays listed with its reason."""

import json

import pytest

from runner import protocol as protocols
from runner.cli import main
from runner.errors import UsageError
from runner.runs.history import history
from runner.study.stages import STAGES, publishable, stage, standing_on
from tests.runner.pasts import REHEARSAL, cells, judge_folder, package, write_run

STUDY = protocols.load("study-1")


def stands(name, runs, protocol=REHEARSAL, target="local"):
    return standing_on(name, protocol, target, history(runs), judge_folder)


def test_the_stages_run_what_the_protocol_says():
    assert stage("probe", REHEARSAL).cells == ()
    assert stage("validate", REHEARSAL).cells == REHEARSAL.order
    canonical = stage("canonical", REHEARSAL)
    assert (canonical.cells, canonical.sequential) == (REHEARSAL.order, True)
    assert not stage("validate", REHEARSAL).sequential


def test_only_the_canonical_stage_of_the_study_itself_is_publishable():
    assert [publishable(name, STUDY) for name in STAGES] == [False, False, True]
    assert [publishable(name, REHEARSAL) for name in STAGES] == [False, False, False]


def test_the_probe_stands_on_nothing(tmp_path):
    assert stands("probe", tmp_path) is None


@pytest.mark.parametrize(("name", "needed"), [("validate", "probe"), ("canonical", "validate")])
def test_without_the_package_before_a_stage_is_refused_with_the_command_that_makes_it(tmp_path, name, needed):
    with pytest.raises(UsageError) as refusal:
        stands(name, tmp_path)
    assert refusal.value.exit_code == 64
    assert refusal.value.next_step == (
        f"python -m runner stage {needed} --protocol study-1-rehearsal --target local"
    )


def test_a_stage_stands_on_the_newest_sound_package_of_the_stage_before(tmp_path):
    write_run(tmp_path, "r1", "probe", package("probe", ()))
    probe = write_run(
        tmp_path, "r2", "probe", package("probe", (), sequential=True), started_at_ms=1_790_000_001_000
    )
    assert (probe / stands("validate", tmp_path) / "index.json").is_file()
    validate = write_run(tmp_path, "r3", "validate", started_at_ms=1_790_000_002_000)
    assert (validate / stands("canonical", tmp_path) / "index.json").is_file()


def test_a_package_of_another_protocol_or_target_carries_nothing(tmp_path):
    write_run(tmp_path, "r1", "probe", package("probe", ()))
    with pytest.raises(UsageError):
        stands("validate", tmp_path, STUDY)
    with pytest.raises(UsageError):
        stands("validate", tmp_path, target="aws")


def test_an_incomplete_validation_carries_nothing_and_the_refusal_says_why(tmp_path):
    write_run(tmp_path, "r1", "validate", package("validate", cells()[:3]))
    with pytest.raises(UsageError) as refusal:
        stands("canonical", tmp_path)
    assert "3 of 4 trials" in refusal.value.found


def test_the_oracle_is_asked_now_so_a_package_changed_since_carries_nothing(tmp_path):
    folder = write_run(tmp_path, "r1", "validate")
    (trial,) = folder.glob("*/trials/control-durable/ledger.jsonl")
    trial.write_bytes(trial.read_bytes().replace(b"10000", b"10001"))
    with pytest.raises(UsageError) as refusal:
        stands("canonical", tmp_path)
    assert "integrity" in refusal.value.found


def test_every_run_is_listed_and_each_excluded_one_says_why(tmp_path):
    write_run(tmp_path, "a-probe", "probe", package("probe", ()))
    write_run(tmp_path, "b-run", "run")
    write_run(tmp_path, "c-killed", "validate", ended=False)
    write_run(tmp_path, "d-short", "validate", package("validate", ()))
    broken = package("validate")
    del broken.docs["trials/control-durable/durable.jsonl"]
    write_run(tmp_path, "e-damaged", "validate", broken)
    refused = tmp_path / "f-refused"
    refused.mkdir()
    (refused / "state.jsonl").write_text(
        json.dumps({"n": 1, "at_ms": 1, "state": "created", "stage": "canonical"})
        + "\n"
        + json.dumps({"n": 2, "at_ms": 2, "state": "refused", "reason": "another run holds this stack"})
        + "\n"
    )
    (tmp_path / "g-nothing").mkdir()
    found = {run.run_id: run.excluded for run in history(tmp_path)}
    assert found == {
        "a-probe": None,
        "b-run": "a run outside the stages",
        "c-killed": "unfinished since waiting: runner resume c-killed",
        "d-short": "0 of 4 planned trials were begun; its probe is indeterminate",
        "e-damaged": found["e-damaged"],
        "f-refused": "refused before anything was opened: another run holds this stack",
        "g-nothing": "unfinished since created: runner resume g-nothing",
    }
    assert "CONTROL/durable" in found["e-damaged"]


def test_the_list_is_json_for_programs_and_changes_nothing(tmp_path, monkeypatch, capsys):
    write_run(tmp_path, "r1", "validate")
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path))
    assert main(["runs", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["run_id"], run["stage"], run["state"], run["grade"]) == (
        "r1",
        "validate",
        "ended",
        "emulated",
    )
    assert [trial["verdict"] for trial in run["trials"]] == ["pass", "pass", "fail", "fail"]
    assert main(["runs"]) == 0
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_a_stage_that_lacks_its_ground_starts_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path))
    command = ["stage", "canonical", "--protocol", "study-1-rehearsal", "--target", "local"]
    assert main(command) == 64
    told = capsys.readouterr()
    assert told.out == "" and "runner stage validate" in told.err
    assert list(tmp_path.iterdir()) == []


def test_what_audits_leave_beside_the_runs_is_no_run(tmp_path):
    (tmp_path / "addenda" / ("0" * 64)).mkdir(parents=True)
    (tmp_path / "addenda" / ("0" * 64) / "index.json").write_bytes(b"{}\n")
    assert history(tmp_path) == []


DAMAGE = {
    "a log that is no JSON": lambda run: (run / "state.jsonl").write_text("hello\n"),
    "a log without states": lambda run: (run / "state.jsonl").write_text('{"x": 1}\n'),
    "a log that is a folder": lambda run: ((run / "state.jsonl").unlink(), (run / "state.jsonl").mkdir()),
    "a torn result": lambda run: (run / "result.json").write_text("{"),
    "a result of something else": lambda run: (run / "result.json").write_text('{"trials": [{}]}'),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_run_is_listed_and_stops_no_command(tmp_path, monkeypatch, capsys, case):
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path))
    write_run(tmp_path, "r1", "probe", package("probe", stories=()))
    DAMAGE[case](write_run(tmp_path, "r2", "validate", package("validate")))
    assert main(["runs", "--json"]) == 0
    told = {run["run_id"]: run for run in json.loads(capsys.readouterr().out)}
    assert told["r1"]["excluded"] is None
    assert told["r2"]["state"] == "damaged" and "its folder is damaged" in told["r2"]["excluded"]
    (grounds,) = {standing_on("validate", REHEARSAL, "local", history(tmp_path), judge_folder)}
    assert grounds == told["r1"]["package"]
    assert main(["resume"]) == 64
    assert main(["closeout", "--protocol", "study-1-rehearsal"]) == 0
    assert "| r2 | ? | ? |" in capsys.readouterr().out


def test_a_damaged_run_cannot_be_resumed_and_the_refusal_names_its_log(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path))
    DAMAGE["a log that is no JSON"](write_run(tmp_path, "r1"))
    assert main(["resume", "r1"]) == 70
    told = capsys.readouterr().err
    assert "the state log of run r1 cannot be read" in told and "fault of the lab" not in told


def test_a_package_that_was_changed_does_not_stop_the_close_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path))
    next(write_run(tmp_path, "r1", "validate").glob("*/environment.json")).write_text("{")
    assert main(["closeout", "--protocol", "study-1-rehearsal"]) == 0
    assert "Judged otherwise now than when it was frozen" in capsys.readouterr().out
