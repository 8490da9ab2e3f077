"""Every deliberate bug in the oracle is killed by a test (slow: each runs the suite in a copy)."""

from __future__ import annotations

import tomllib

import pytest

from tests.oracle import mutants


def test_every_mutant_still_applies():
    listed = tomllib.loads(mutants.LIST.read_text(encoding="utf-8"))["mutant"]
    assert len(listed) >= 40 and len({mutant["name"] for mutant in listed}) == len(listed)
    for mutant in listed:
        text = (mutants.ROOT / "oracle" / mutant["file"]).read_text(encoding="utf-8")
        assert text.count(mutant["old"]) == 1, mutant["name"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_mutant_is_killed(capsys):
    assert mutants.main([]) == 0, capsys.readouterr().out
