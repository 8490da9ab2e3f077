"""L02, L03, L05, L06: at least two sound snapshots, the last two equal, every status known and final.

Least evidence: ledger reads that are all sound.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.ledger import EFFECT, NO_EFFECT, PENDING
from oracle.rules.base import COMPLETE, Rule


def check(trial):
    snapshots = trial.ledger.snapshots
    if len(snapshots) < 2:
        yield breach(
            "L02",
            f"expected at least two sound snapshots, found {len(snapshots)}",
            None,
            trial_id=trial.trial_id,
        )
        return
    last = {id_: transaction.row for id_, transaction in snapshots[-1].rows.items()}
    before = {id_: transaction.row for id_, transaction in snapshots[-2].rows.items()}
    vanished = sorted({id_ for snapshot in snapshots for id_ in snapshot.rows} - last.keys())
    if last != before or vanished:
        changed = sorted(id_ for id_ in last.keys() | before.keys() if last.get(id_) != before.get(id_))
        yield breach(
            "L03",
            "the last two snapshots differ or a transaction vanished",
            None,
            snapshots=[snapshots[-2].number, snapshots[-1].number],
            transactions=changed or vanished,
        )
    for transaction in snapshots[-1].rows.values():
        status = transaction.row["status"]
        if status == PENDING:
            yield breach("L06", "a transaction is pending", transaction.where, transaction_id=transaction.id)
        elif status not in (EFFECT, NO_EFFECT):
            yield breach(
                "L05", f"unknown status {status[:40]!r}", transaction.where, transaction_id=transaction.id
            )


RULE = Rule("ledger_settled", COMPLETE, frozenset({"ledger"}), check)
