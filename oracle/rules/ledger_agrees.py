"""L04: the ledger is what the journal's commits say, one for one.

This also proves that the snapshots are late enough: commit and event are one transaction, so a snapshot
that holds exactly the commits of a journal that ends in trial_closed is the ledger at that end. No clock
is asked (CASES D31). Least evidence: a whole journal and a sound ledger.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import COMPLETE, Rule


def check(trial):
    commits = {
        event.row["transaction_id"]: event for event in trial.journal.of_type("provider_commit_confirmed")
    }
    effects = {effect.id: effect for effect in trial.ledger.effects()}
    if len(commits) != len(trial.journal.of_type("provider_commit_confirmed")):
        yield breach("L04", "two commits name one transaction", None, transactions=sorted(commits))
    for id_ in sorted(commits.keys() ^ effects.keys()):
        if id_ in commits:
            yield breach(
                "L04",
                "a confirmed commit is not in the ledger",
                None,
                **commits[id_].witness(),
                transaction_id=id_,
            )
        else:
            yield breach(
                "L04",
                "the ledger holds a transaction that no commit confirmed",
                effects[id_].where,
                transaction_id=id_,
            )
    for answer in trial.journal.of_type("response_received"):
        if answer.row["transaction_id"] not in effects:
            yield breach(
                "L04", "an answer names a transaction that is not in the ledger", None, **answer.witness()
            )
    for id_ in sorted(commits.keys() & effects.keys()):
        event, row = commits[id_].row, effects[id_].row
        said = (event["seq"], event.get("caused_by"), event.get("attempt"))
        if said != (row["seq"], row["dispatch_event_id"], row["attempt"]):
            yield breach(
                "L04",
                "commit and transaction disagree on sequence, dispatch or attempt",
                effects[id_].where,
                transaction_id=id_,
                seq=event["seq"],
            )


RULE = Rule("ledger_agrees", COMPLETE, frozenset({"journal", "ledger"}), check)
