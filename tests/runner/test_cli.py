"""The command line refuses bad input with the valid names and exit code 64, before anything starts."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from runner.cli import main
from runner.runs.result import TRIAL_KEYS, table
from tests.runner.pasts import package

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["run", "--scenario", "CHAOS"], ["CONTROL", "COMMIT_THEN_TIMEOUT"]),
        (["run", "--scenario", "CONTROL", "--variant", "magic"], ["conventional", "durable"]),
        (["run", "--scenario", "CONTROL", "--protocol", "study-9"], ["study-1", "study-1-rehearsal"]),
        (["run", "--scenario", "CONTROL", "--target", "moon"], ["local", "aws"]),
        (["fly"], ["run", "local"]),
        ([], ["COMMAND"]),
        (["run", "--scen", "CONTROL"], ["--scen"]),
    ],
)
def test_bad_input_is_refused_with_the_valid_names(argv, names, capsys, monkeypatch):
    monkeypatch.setattr("runner.commands.run.choose", lambda _asked: pytest.fail("something was started"))
    with pytest.raises(SystemExit) as refusal:
        main(argv)
    assert refusal.value.code == 64
    told = capsys.readouterr()
    assert told.out == ""
    for name in names:
        assert name in told.err


@pytest.fixture
def package_path(tmp_path):
    return str(package().write(tmp_path))


def piped(argv, **environment):
    """Run a command whose reader goes away before a byte is written; return exit code and stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "runner", *argv],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            env={**os.environ, **environment},
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [["cost"], ["cost", "--json"]], ids=" ".join)
def test_a_reader_that_goes_away_ends_a_command_quietly(arguments, package_path):
    assert piped([*arguments, package_path]) == (70, "")


def test_a_reader_that_goes_away_is_noticed_even_by_a_short_answer(tmp_path):
    (tmp_path / "runs").mkdir()
    code, told = piped(["runs", "--json"], SUC_RUNS_DIR=str(tmp_path / "runs"))
    assert (code, told) == (70, "")


def test_a_terminal_of_few_letters_and_few_columns_ends_no_command(package_path):
    environment = {"PYTHONIOENCODING": "ascii", "COLUMNS": "24", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "runner", "cost", package_path],
        capture_output=True,
        cwd=PROJECT,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout and b"|" in done.stdout


def test_a_letter_that_a_terminal_lacks_is_shown_by_its_number(tmp_path):
    (tmp_path / "no\u00e9l").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "runner", "runs"],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "SUC_RUNS_DIR": str(tmp_path)},
    )
    assert done.returncode == 0 and done.stdout.startswith("no\\xe9l  ?")


@pytest.mark.parametrize("width", [24, 40, 80])
def test_no_table_cuts_a_word_on_a_narrow_terminal(width):
    trial = {
        **dict.fromkeys(TRIAL_KEYS, None),
        "scenario": "COMMIT_THEN_TIMEOUT",
        "variant": "conventional",
        "ledger_transactions": 2,
        "refunded_minor": 20000,
        "currency": "BRL",
        "verdict": "indeterminate",
        "validity": "invalid",
    }
    result = {"protocol": "study-1", "target": "local", "grade": "emulated", "trials": [trial]}
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table(result))
    shown = console.export_text()
    assert "\u2026" not in shown
    assert width < 80 or all(word in shown for word in ("COMMIT_THEN_TIMEOUT", "R$ 200.00", "indeterminate"))


def test_ctrl_c_during_the_imports_ends_without_a_traceback(tmp_path):
    # A module that the command line imports first, and that is interrupted as Ctrl-C does it.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'runner.commands.run':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "runner", "runs"],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (70, "", "interrupted\n")


@pytest.mark.parametrize("command", [["local", "up"], ["local", "down"]], ids=" ".join)
def test_a_place_that_cannot_be_used_is_named_and_no_fault_of_the_lab(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("runner.local.ministack.find_python", lambda _note: sys.executable)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SUC_STATE_DIR", str(tmp_path / "file"))
    assert main(command) == 70
    told = capsys.readouterr()
    assert f"error: {tmp_path / 'file'}: File exists" in told.err and "next:" in told.err
    assert "fault of the lab" not in told.err and told.out == ""
