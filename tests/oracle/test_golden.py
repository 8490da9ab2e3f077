"""FORMAT.md's MUSTs, the codes and the bad packages are one list; each bad package yields exactly its
findings.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from oracle.codes import CODES
from oracle.judge import judge_path
from tests.oracle.bad_packages import BAD, TABLE, expected, package_in, write_all
from tests.oracle.memory import codes

FORMAT = Path(__file__).resolve().parents[2] / "evidence" / "FORMAT.md"
REGENERATE = "python -m tests.oracle.bad_packages"


def test_format_names_each_code_once_with_the_clause_of_the_oracle():
    clauses = re.findall(r"^- \*\*([A-Z]\d\d)\*\* (.*)$", FORMAT.read_text(encoding="utf-8"), re.MULTILINE)
    assert clauses == [
        (code.code, code.clause) for code in sorted(CODES.values(), key=lambda c: _section(c.code))
    ]


def _section(code):
    return "PJKRLGQHTEVN".index(code[0]), code


def test_every_clause_is_a_must_and_every_code_has_one_fixture():
    assert all(("SHOULD" if code.consequence == "note" else "MUST") in code.clause for code in CODES.values())
    assert sorted(TABLE) == sorted(CODES)
    assert sorted(folder.name for folder in BAD.iterdir()) == sorted(
        f"{code}_{TABLE[code][0]}" for code in CODES
    )


@pytest.mark.parametrize("folder", sorted(BAD.iterdir()), ids=lambda folder: folder.name)
def test_bad_package_yields_exactly_its_findings(folder):
    report = judge_path(package_in(folder))
    said = json.loads((folder / "expected.json").read_text())
    assert said == expected(folder.name[:3])
    assert {"codes": sorted(codes(report)), "verdict": report.verdict} == said


def test_fixtures_are_byte_stable(tmp_path):
    write_all(tmp_path)
    assert _tree(tmp_path) == _tree(BAD), f"run {REGENERATE}"


def _tree(root):
    return {
        str(path.relative_to(root)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }
