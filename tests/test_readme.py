"""The README says what is there: its files exist, its commands parse, its table is the study's."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runner.cli import build_parser

PROJECT = Path(__file__).resolve().parents[1]
README = (PROJECT / "README.md").read_text()
CI = (PROJECT / ".ci" / "run").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
COMMANDS = [line.split("#")[0].strip() for block in BLOCKS for line in block.splitlines() if line.strip()]


def test_every_file_it_names_exists():
    named = set(re.findall(r"`((?:lambdas|runner|stacks|oracle|evidence|tests)/[\w./-]*)`", README))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (PROJECT / name).exists()] == []


def test_ci_runs_the_readmes_own_test_command():
    assert "uv run pytest" in COMMANDS
    assert "\nuv run pytest\n" in CI


@pytest.mark.parametrize("command", [c for c in COMMANDS if "-m runner" in c])
def test_every_runner_command_parses(command):
    words = shlex.split(command)
    build_parser().parse_args(words[words.index("runner") + 1 :])


def test_the_two_commands_come_before_everything_else_that_can_be_typed():
    assert COMMANDS[:2] == [
        "uv run python -m runner run --scenario COMMIT_THEN_TIMEOUT",
        "uv run pytest",
    ]


@pytest.mark.slow
@pytest.mark.skipif(not all(map(shutil.which, ("tar", "jq", "shasum"))), reason="needs tar, jq and shasum")
def test_its_checks_can_be_typed_one_after_another_in_the_clone(tmp_path):
    published = PROJECT / "evidence" / "published" / "study-1"
    before = sorted(published.iterdir())
    package = json.loads((published / "results.json").read_text())["package"]["id"]
    checks = "".join(block for block in BLOCKS if "shasum" in block or "-m oracle" in block)
    # A package of the reader's own is played by the one that the first check has unpacked.
    for printed, here in (
        ("/tmp", str(tmp_path)),
        ("runs/RUN/PACKAGE", str(tmp_path / package)),
        ("judge PACKAGE", f"judge {package}"),
        ("uv run python", sys.executable),
        ("python3 ", f"{sys.executable} "),
    ):
        checks = checks.replace(printed, here)
    done = subprocess.run(["bash", "-c", checks], cwd=PROJECT, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.count("\nverdict   fail\n") == 2
    assert "citations and the verdict hold" in done.stdout
    assert done.returncode == 1  # what `judge` says last: fail
    assert sorted(published.iterdir()) == before


def test_the_results_table_is_the_expected_one_and_says_emulated():
    rows = [line.split("|")[2:-1] for line in README.splitlines() if re.match(r"\| [1-4] \|", line)]
    assert [[cell.strip(" `") for cell in row] for row in rows] == [
        ["CONTROL", "conventional", "1", "R$ 100.00", "pass", "SUCCEEDED", "KNOWN", "true"],
        ["CONTROL", "durable", "1", "R$ 100.00", "pass", "SUCCEEDED", "KNOWN", "true"],
        ["COMMIT_THEN_TIMEOUT", "conventional", "2", "R$ 200.00", "fail", "SUCCEEDED", "UNKNOWN", "false"],
        ["COMMIT_THEN_TIMEOUT", "durable", "2", "R$ 200.00", "fail", "SUCCEEDED", "UNKNOWN", "false"],
    ]
    assert "graded **emulated**" in README


def test_every_runner_command_is_in_the_readme():
    parser = build_parser()
    (choices,) = [a.choices for a in parser._actions if a.dest == "command"]
    assert [name for name in choices if f"runner {name}" not in README] == []
