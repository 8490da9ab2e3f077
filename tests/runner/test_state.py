"""The state log: on disk before the action, whole after a kill, one process at a time."""

import os
import signal
import subprocess
import sys

import pytest

from runner.errors import UsageError
from runner.runs import state
from runner.runs.state import CRASH_AT, State, StateLog


def open_log(folder):
    return StateLog(folder, lambda: 7)


def test_entries_are_numbered_and_keep_their_facts(tmp_path):
    log = open_log(tmp_path)
    log.write(State.CREATED, run_id="r")
    log.write(State.LEASING)
    assert state.read(tmp_path) == [
        {"n": 1, "at_ms": 7, "state": "created", "run_id": "r"},
        {"n": 2, "at_ms": 7, "state": "leasing"},
    ]


def test_a_torn_last_line_was_never_written_and_the_next_entry_takes_its_place(tmp_path):
    log = open_log(tmp_path)
    log.write(State.CREATED)
    log.close()
    with (tmp_path / "state.jsonl").open("ab") as file:
        file.write(b'{"n":2,"state":"sen')
    assert [entry["state"] for entry in state.read(tmp_path)] == ["created"]
    log = open_log(tmp_path)
    log.write(State.RESUMED)
    assert [(entry["n"], entry["state"]) for entry in state.read(tmp_path)] == [
        (1, "created"),
        (2, "resumed"),
    ]


def test_a_living_run_cannot_be_taken_up(tmp_path):
    log = open_log(tmp_path)
    with pytest.raises(UsageError, match="still running"):
        open_log(tmp_path)
    log.close()
    open_log(tmp_path).close()


@pytest.mark.parametrize(
    ("at", "written"),
    [("sent:before", ["created"]), ("sent", ["created", "sent"]), ("sent:2", ["created", "sent", "sent"])],
)
def test_an_armed_crash_window_kills_there_and_nowhere_else(tmp_path, at, written):
    script = (
        "import sys, pathlib; from runner.runs.state import StateLog;"
        "log = StateLog(pathlib.Path(sys.argv[1]), int);"
        "[log.write(name) for name in ('created', 'sent', 'sent', 'ended')]"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], env={**os.environ, CRASH_AT: at}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert [entry["state"] for entry in state.read(tmp_path)] == written


def test_without_the_variable_nothing_dies(tmp_path, monkeypatch):
    monkeypatch.delenv(CRASH_AT, raising=False)
    log = open_log(tmp_path)
    for name in State.all():
        log.write(name)
    assert len(state.read(tmp_path)) == len(State.all())


def test_a_folder_without_a_log_has_no_entries(tmp_path):
    assert state.read(tmp_path) == []
