"""E02: the successful transactions of a payment stay within the captured amount.

Least evidence: the rows, and a captured amount that nothing contradicts. The sum is over the payment, not
over the request (CASES D23): two refunds that are each allowed can together exceed what was captured.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import EFFECTS, Rule, not_probe


def check(trial):
    captured, payment_id = trial.request["captured_minor"], trial.request["payment_id"]
    counted = [
        effect
        for effect in trial.ledger.effects()
        if effect.full and not trial.ledger.contradicted(effect) and effect.row["payment_id"] == payment_id
    ]
    total = sum(effect.row["amount_minor"] for effect in counted)
    if total > captured:
        yield breach(
            "E02",
            f"refunded {total} of {captured} captured minor units",
            counted[-1].where,
            transactions=[effect.id for effect in counted],
            refunded_minor=total,
            captured_minor=captured,
        )


RULE = Rule("within_captured", EFFECTS, frozenset({"request"}), check, not_probe)
