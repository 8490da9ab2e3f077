"""Where results are kept is looked at before anything is started or overwritten."""

import pytest

from runner.cli import main
from runner.commands import run as commands_run
from runner.targets import labs

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
    [("nowhere/x.md", "no folder"), (".", "a folder"), ("mine.md", "a file that is no close-out")],
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
