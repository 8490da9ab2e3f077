"""E01: at most one successful transaction. Least evidence: any ledger row that decodes."""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import EFFECTS, Rule, not_probe


def check(trial):
    effects = trial.ledger.effects()
    if len(effects) > 1:
        yield breach(
            "E01",
            f"{len(effects)} successful transactions for one approved refund",
            effects[1].where,
            transactions=[effect.id for effect in effects],
            seqs=[effect.row.get("seq") for effect in effects],
        )


RULE = Rule("one_effect", EFFECTS, frozenset(), check, not_probe)
