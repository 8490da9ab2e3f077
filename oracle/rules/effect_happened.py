"""E04: at least one successful transaction.

Least evidence: everything. Absence is a fact only in a complete, quiescent trial whose driver did its
part and whose request is finished or dead-lettered; otherwise the effect may still come (CASES D22).
"""

from __future__ import annotations

from oracle.belief import processing
from oracle.finding import breach
from oracle.rules.base import EFFECTS, Rule, not_probe


def check(trial):
    if not trial.ledger.effects():
        yield breach(
            "E04", "no successful transaction for an approved refund", None, processing=processing(trial)
        )


RULE = Rule("effect_happened", EFFECTS, frozenset({"settled"}), check, not_probe)
