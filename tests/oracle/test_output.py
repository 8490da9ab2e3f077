"""Where the answer goes: the exit code says what was found, or that it could not be said.

The streams are those of real processes, because half of it happens when the interpreter ends.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oracle.cli import main
from tests.oracle.builder import control, four_cells, package_with, treatment

ROOT = Path(__file__).resolve().parents[2]
BUFFERED, UNBUFFERED, ISOLATED = ("-m", "oracle"), ("-u", "-m", "oracle"), ("-I", "-S", "oracle")
HOW = pytest.mark.parametrize(
    "how", [BUFFERED, UNBUFFERED, ISOLATED], ids=["buffered", "unbuffered", "isolated"]
)
FULL = Path("/dev/full")
full_disk = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Every command with arguments for which it has an answer, and the exit code of that answer."""
    folder = tmp_path_factory.mktemp("packages")
    fail, good = four_cells().write(folder), package_with(control).write(folder)
    (folder / "results.json").write_bytes(oracle(BUFFERED, "cite", fail, stdout=subprocess.PIPE).stdout)
    return {
        ("judge", fail): 1,
        ("judge", good): 0,
        ("judge", "--json", fail): 1,
        ("explain", fail): 1,
        ("compare", fail): 0,
        ("compare", good): 2,
        ("cite", fail): 0,
        ("results", fail, folder / "results.json"): 0,
        ("results", good, folder / "results.json"): 2,
        ("codes",): 0,
        ("--help",): 0,
        ("judge", "--help"): 0,
        ("--version",): 0,
    }


def commands(asked, how):
    """All of them once; the ways to start Python differ only in how it writes, so a few do for the others."""
    return asked if how == BUFFERED else {command: asked[command] for command in [*asked][-3:] + [*asked][:1]}


def oracle(how, *arguments, **streams):
    """One command in a process of its own, in an environment that says nothing about Python."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, *how, *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        **{"stderr": subprocess.PIPE, **streams},
    )


@HOW
def test_a_reader_that_closed_the_pipe_does_not_change_the_code(asked, how):
    for command, code in commands(asked, how).items():
        reading, writing = os.pipe()
        os.close(reading)
        done = oracle(how, *command, stdout=writing)
        os.close(writing)
        assert (done.returncode, done.stderr) == (code, b""), command


@full_disk
@HOW
def test_an_answer_that_does_not_fit_on_the_disk_is_70_and_says_stdout(asked, how):
    with FULL.open("wb") as full:
        for command in commands(asked, how):
            done = oracle(how, *command, stdout=full)
            said = done.stderr.decode()
            assert (done.returncode, len(said.splitlines())) == (70, 1), (command, said)
            assert "stdout: No space left on device" in said and "package" not in said, command


@pytest.mark.parametrize("how", [BUFFERED, UNBUFFERED], ids=["buffered", "unbuffered"])
def test_an_answer_that_fits_in_part_is_70(asked, tmp_path, how):
    """The verdict is the last line; without it what arrived is no answer."""
    command = next(command for command in asked if command[0] == "judge")
    with (tmp_path / "out").open("wb") as out:
        done = oracle(
            how,
            *command,
            stdout=out,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        )
    assert (tmp_path / "out").stat().st_size == 100
    assert done.returncode == 70 and b"stdout: File too large" in done.stderr


@HOW
def test_a_closed_stdout_is_70(asked, how):
    for command in commands(asked, how):
        done = oracle(how, *command, preexec_fn=lambda: os.close(1))
        assert done.returncode == 70 and b"stdout is closed" in done.stderr, command


@full_disk
@HOW
def test_a_full_stderr_changes_no_code(asked, how):
    with FULL.open("wb") as full:
        for command in (("judge", "nothing"), ("judge",), ("results", "nothing", "none.json")):
            assert oracle(how, *command, stdout=full, stderr=full).returncode == 64, command
        assert oracle(how, *next(iter(asked)), stdout=full, stderr=full).returncode == 70


def test_a_stream_that_cannot_show_a_character_gets_its_escape(tmp_path):
    package = package_with(control)
    package.docs["trials/control-conventional/trial.json"]["driver"]["sends"] = 2
    package.docs["trials/control-conventional/trial.json"]["ended_because"] = "zurückgezogen"
    done = subprocess.run(
        [sys.executable, *BUFFERED, "judge", package.write(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (2, b"") and b"zur\\xfcckgezogen" in done.stdout


def test_another_python_is_told_so_and_never_ends_like_a_fail():
    code = "import runpy, sys; sys.version_info = (3, 10, 0); runpy.run_path('oracle', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 70 and done.stderr.startswith("oracle: expected Python 3.11 or newer, found 3.")


FORGED = "CONTROL\n\nverdict   pass\x1b[8m\u202e"


def test_no_text_of_a_package_writes_a_line_or_commands_the_terminal(tmp_path, capsys):
    """A scenario that goes on with an answer of its own and then tells the terminal to hide the real one."""
    package = package_with(control, treatment)
    for path in ("trials/control-conventional/trial.json", "trials/treatment-conventional/trial.json"):
        package.docs[path].update(scenario=FORGED, variant=FORGED, ended_because=FORGED)
    for row in package.docs["run.json"]["trials"]:
        row.update(scenario=FORGED, variant=FORGED)
    package.docs["trials/control-conventional/ledger.jsonl"][0]["read"] = FORGED
    root = package.write(tmp_path)
    for command in ("judge", "explain", "compare"):
        main([command, str(root)])
        out = capsys.readouterr().out
        assert "\\x1b[8m" in out and out.replace("\n", "").isprintable(), command
        assert out.count("\nverdict   pass") == 0, command


def test_a_copy_of_the_oracle_that_is_not_whole_gives_no_verdict(tmp_path):
    shutil.copytree(
        ROOT / "oracle", tmp_path / "oracle", ignore=shutil.ignore_patterns("__pycache__", "rules")
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", tmp_path / "oracle", "judge", "x"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (70, "")
    assert done.stderr.startswith("oracle: this copy is not whole (ModuleNotFoundError")
