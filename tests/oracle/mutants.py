"""Plants deliberate bugs in a copy of the oracle, one at a time, and demands that a test kills each.

`python -m tests.oracle.mutants [NAME ...]` prints every mutant with the test that kills it, and ends with 1 if one
survives. A patch that no longer applies is an error: the list must follow the code.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.oracle.mutant_list import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
# The fast tests first; the drawn ones only for what they leave alive.
SUITES = (
    ("test_cases.py", "test_rules.py", "test_golden.py", "test_cli.py"),
    ("test_monotone.py", "test_reference.py"),
)


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str


def plant(mutant: Mutant, folder: Path) -> None:
    """A copy of the oracle and of its tests with this one bug."""
    keep = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "oracle", folder / "oracle", ignore=keep)
    for part in ("oracle", "golden"):
        shutil.copytree(ROOT / "tests" / part, folder / "tests" / part, ignore=keep, symlinks=True)
    shutil.copy(ROOT / "tests" / "__init__.py", folder / "tests")
    (folder / "evidence").mkdir()
    shutil.copy(ROOT / "evidence" / "FORMAT.md", folder / "evidence")
    target = folder / "oracle" / mutant.file
    text = target.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(
            f"mutant {mutant.name}: expected its text once in {mutant.file}, found {text.count(mutant.old)}"
        )
    mutated = text.replace(mutant.old, mutant.new)
    compile(mutated, mutant.file, "exec")  # a bug that does not even parse would be killed by anything
    target.write_text(mutated, encoding="utf-8")


def killer(mutant: Mutant) -> str | None:
    """The first test that fails under the mutant, or None if all pass."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plant(mutant, folder)
        for suite in SUITES:
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-x",
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    "-m",
                    "not slow",
                    "--deselect",
                    "tests/oracle/test_golden.py::test_fixtures_are_byte_stable",
                    *(f"tests/oracle/{test}" for test in suite),
                ],
                cwd=folder,
                capture_output=True,
                text=True,
            )
            failed = re.search(r"^(?:FAILED|ERROR) \S*?(\w+\.py(?:::\S+)?)", done.stdout, re.MULTILINE)
            if done.returncode != 0:
                return failed[1] if failed else done.stdout[-200:]
    return None


def main(names: list[str]) -> int:
    unharmed = killer(Mutant("none", "cli.py", "COMMANDS = {", "COMMANDS = {"))
    if unharmed:
        raise SystemExit(f"{unharmed} fails without any mutant; nothing can be said")
    mutants = [Mutant(*row) for row in MUTANTS if not names or row[0] in names]
    survivors = []
    with ThreadPoolExecutor(2) as pool:
        for mutant, test in zip(mutants, pool.map(killer, mutants), strict=True):
            print(f"{mutant.name:<46} {test or 'SURVIVES'}", flush=True)
            survivors += [] if test else [mutant.name]
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
