"""Asks the oracle as any reader would: as a command over a package's bytes, never as an import."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from runner.errors import EXIT_USAGE, LabError, UsageError
from runner.places import PROJECT_ROOT

LIMIT_S = 300
VERDICTS = (0, 1, 2)  # the oracle's exit codes that come with a document


def ask(command: str, *packages: Path) -> dict[str, Any]:
    """Return what `python -m oracle COMMAND PACKAGE... --json` says.

    Raises UsageError when the oracle says that a path is no package, LabError when it says nothing.
    """
    arguments = [command, *(str(path.resolve()) for path in packages), "--json"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "oracle", *arguments],
            cwd=PROJECT_ROOT,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _no_answer(arguments, f"none within {LIMIT_S} s") from error
    if done.returncode == EXIT_USAGE:
        raise UsageError("the oracle refused", found=done.stderr.strip()[-1000:])
    try:
        # Python itself ends with 1 when it cannot start the oracle: only a document is an answer.
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if done.returncode not in VERDICTS or not isinstance(answer, dict):
        raise _no_answer(arguments, f"{done.returncode}: {done.stderr.strip()[-1000:]}")
    return answer


def judge(package: Path) -> dict[str, Any]:
    """Return the oracle's verdict on a package."""
    return ask("judge", package)


def _no_answer(arguments: list[str], found: str) -> LabError:
    return LabError(
        "the oracle gave no answer",
        expected="a JSON document and exit code 0, 1 or 2",
        found=found,
        next_step=f"run `python -m oracle {' '.join(arguments)}`",
    )
