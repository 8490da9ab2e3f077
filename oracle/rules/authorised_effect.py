"""E03: the set of successful transactions is the authorised effect, in request, payment, amount and currency.

Least evidence: the rows, and an approved refund that nothing contradicts. An empty set is E04's to judge.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import EFFECTS, Rule, not_probe


def check(trial):
    request = trial.request
    authorised = {
        "refund_request_id": request["refund_request_id"],
        "payment_id": request["payment_id"],
        "amount_minor": request["approved_minor"],
        "currency": request["currency"],
    }
    effects = [
        effect for effect in trial.ledger.effects() if effect.full and not trial.ledger.contradicted(effect)
    ]
    for effect in effects:
        found = {name: effect.row[name] for name in authorised}
        if found != authorised:
            wrong = sorted(name for name in authorised if found[name] != authorised[name])
            yield breach(
                "E03",
                f"the transaction is not the approved refund: {', '.join(wrong)}",
                effect.where,
                transaction_id=effect.id,
                expected={name: authorised[name] for name in wrong},
                found={name: found[name] for name in wrong},
            )
            return
    if len(effects) > 1:
        yield breach(
            "E03",
            "the set of transactions is larger than the authorised effect",
            effects[1].where,
            transactions=[effect.id for effect in effects],
        )


RULE = Rule("authorised_effect", EFFECTS, frozenset({"request"}), check, not_probe)
