"""Where results are kept is looked at before anything is started or overwritten."""

import os
from pathlib import Path

import pytest

from runner import outputs
from runner.cli import main
from runner.commands import audit as commands_audit
from runner.commands import run as commands_run
from runner.errors import LabError, UsageError
from runner.runs import oracle_command
from runner.targets import labs
from tests.report import packages

RUN = ["run", "--scenario", "CONTROL", "--protocol", "study-1-rehearsal", "--target", "local"]


def refused(argv, capsys, named):
    assert main(argv) == 64
    told = capsys.readouterr()
    assert named in told.err and "next:" in told.err and "Traceback" not in told.err
    assert told.out == ""


def test_a_runs_folder_that_is_a_file_is_refused_before_a_cloud_is_started(capsys, monkeypatch, tmp_path):
    (tmp_path / "runs").write_text("")
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setattr(labs, "opened", lambda *_: pytest.fail("something was started"))
    assert commands_run.labs is labs
    refused(RUN, capsys, "runs cannot be kept in")


@pytest.mark.parametrize(
    ("out", "found"),
    [("nowhere/x.md", "no folder"), (".", "a folder"), ("mine.md", "a file that is not a close-out")],
)
def test_a_close_out_overwrites_nothing_but_a_close_out(out, found, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path / "runs"))
    (tmp_path / "mine.md").write_text("mine")
    refused(["closeout", "--out", str(tmp_path / out)], capsys, found)
    assert (tmp_path / "mine.md").read_text() == "mine"


def test_a_close_out_may_be_written_again(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path / "runs"))
    argv = ["closeout", "--out", str(tmp_path / "STUDY-1.md")]
    assert main(argv) == 0
    assert main(argv) == 0
    assert (tmp_path / "STUDY-1.md").read_text().startswith("# Checkpoint is not idempotency")


def test_an_index_of_no_runs_is_the_users_to_mend(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path / "runs"))
    refused(["report", "--index", "--out", str(tmp_path / "i.html")], capsys, "there are no runs in")


PACKAGE = "evidence/published/study-1-rehearsal/study-1-rehearsal-evidence.tar.gz"
PROJECT = Path(__file__).resolve().parents[2]
REPORTS = (["report", str(PROJECT / PACKAGE)], ["report", str(PROJECT / PACKAGE), "--picture"])


@pytest.mark.parametrize(
    "command", [*REPORTS, ["audit"], ["cleanup"]], ids=["page", "picture", "audit", "cleanup"]
)
@pytest.mark.parametrize(
    ("out", "found"),
    [
        ("nowhere/x", "no folder"),
        (".", "a folder"),
        ("mine", "a file that is not a"),
        ("gone/x", "no folder"),
        ("pipe", "something that is no file"),
        (f"{'a' * 64}/x", "whose integrity a file more would break"),
        ("n" * 300, "File name too long"),
    ],
)
def test_every_out_is_looked_at_before_any_work(command, out, found, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(oracle_command.subprocess, "run", lambda *_, **__: pytest.fail("work was done"))
    monkeypatch.setattr(commands_audit, "choose", lambda _asked: pytest.fail("work was done"))
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "gone").symlink_to(tmp_path / "not there")
    (tmp_path / ("a" * 64)).mkdir()
    (tmp_path / ("a" * 64) / "index.json").write_text("{}")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    refused([*command, "--out", str(tmp_path / out)], capsys, found)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_comparison_is_not_written_into_the_package_one_stands_in(capsys, monkeypatch, tmp_path):
    path = packages.only_control().write(tmp_path)
    monkeypatch.chdir(path)
    refused(["report", "--compare", "."], capsys, "whose integrity a file more would break")
    assert not (path / "comparison.html").exists()


def test_a_file_is_replaced_whole_where_a_link_points(tmp_path):
    (tmp_path / "page").write_bytes(b"<svg old")
    (tmp_path / "link").symlink_to("page")
    outputs.demand_file(tmp_path / "link", "a picture", b"<svg")
    outputs.write_file(tmp_path / "link", b"<svg new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "page").read_bytes() == b"<svg new"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", "page"]


def test_a_full_disk_leaves_the_earlier_file_and_nothing_beside_it(tmp_path, monkeypatch):
    (tmp_path / "page").write_bytes(b"<svg old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs.Path, "chmod", full)
    with pytest.raises(UsageError, match="No space left"):
        outputs.write_file(tmp_path / "page", b"<svg new")
    assert [(f.name, f.read_bytes()) for f in tmp_path.iterdir()] == [("page", b"<svg old")]


def test_an_oracle_that_does_not_end_is_told_as_no_answer(monkeypatch, tmp_path):
    slow = [oracle_command.sys.executable, "-c", "import time; time.sleep(60)"]
    run = oracle_command.subprocess.run
    monkeypatch.setattr(oracle_command.subprocess, "run", lambda _command, **how: run(slow, **how))
    monkeypatch.setattr(oracle_command, "LIMIT_S", 0.2)
    with pytest.raises(LabError, match="the oracle gave no answer") as told:
        oracle_command.judge(tmp_path)
    assert told.value.found == "none within 0.2 s"
    assert told.value.next_step == f"run `python -m oracle judge {tmp_path} --json`"
