"""Plants deliberate bugs in a copy of the oracle, one at a time, and demands that a test kills each.

`python -m tests.oracle.mutants [NAME ...]` prints every mutant with the test that kills it, and ends with 1
if one survives. A patch that no longer applies is an error: the list must follow the code.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.toml")
# The fast tests first; the drawn ones only for what they leave alive.
SUITES = (
    (
        "test_cases.py",
        "test_cases_evidence.py",
        "test_rules.py",
        "test_reads.py",
        "test_attacks.py",
        "test_golden.py",
        "test_cli.py",
    ),
    ("test_monotone.py", "test_reference.py", "test_output.py"),
)


QUICKLY = (
    *("-x", "-q", "--assert=plain", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:timeout"),
    *("--deselect", "tests/oracle/test_golden.py::test_fixtures_are_byte_stable"),
)


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    killer: str = ""  # the test that killed it last time, tried first


def plant(mutant: Mutant, folder: Path) -> None:
    """A copy of the oracle and of its tests with this one bug; compiled files come along to save time."""
    shutil.copytree(ROOT / "oracle", folder / "oracle")
    shutil.copytree(ROOT / "tests" / "oracle", folder / "tests" / "oracle")
    shutil.copy(ROOT / "tests" / "__init__.py", folder / "tests")
    (folder / "tests" / "golden").symlink_to(ROOT / "tests" / "golden")
    (folder / "evidence").symlink_to(ROOT / "evidence")
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
        for suite in ((mutant.killer,), *SUITES) if mutant.killer else SUITES:
            tests = [f"tests/oracle/{test}" for test in suite]
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *QUICKLY, *tests], cwd=folder, capture_output=True, text=True
            )
            failed = re.search(r"^(?:FAILED|ERROR) \S*?(\w+\.py(?:::\S+)?)", done.stdout, re.MULTILINE)
            if done.returncode == 1 and failed:
                return failed[1]
            # Anything else than failed tests is no kill; a killer that was renamed is looked for again.
            if done.returncode not in (0, 4) or (done.returncode == 4 and suite != (mutant.killer,)):
                raise SystemExit(
                    f"mutant {mutant.name}: pytest ended with {done.returncode}\n{done.stdout[-500:]}"
                )
    return None


def main(names: list[str]) -> int:
    unharmed = killer(Mutant("none", "cli.py", "COMMANDS = {", "COMMANDS = {"))
    if unharmed:
        raise SystemExit(f"{unharmed} fails without any mutant; nothing can be said")
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    mutants = [Mutant(**row) for row in listed if not names or row["name"] in names]
    survivors = []
    with ThreadPoolExecutor(2) as pool:
        for mutant, test in zip(mutants, pool.map(killer, mutants), strict=True):
            print(f"{mutant.name:<46} {test or 'SURVIVES'}", flush=True)
            survivors += [] if test else [mutant.name]
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
