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
    numbers = [snapshot.number for snapshot in snapshots]
    if numbers != list(range(1, len(numbers) + 1)):
        yield breach("L02", f"expected snapshots 1..n, found {numbers[:8]}", None, trial_id=trial.trial_id)
    last = {id_: transaction.row for id_, transaction in snapshots[-1].rows.items()}
    before = {id_: transaction.row for id_, transaction in snapshots[-2].rows.items()}
    vanished = sorted({id_ for snapshot in snapshots for id_ in snapshot.rows} - last.keys())
    changed = {id_ for id_ in last.keys() | before.keys() if last.get(id_) != before.get(id_)}
    changed |= {id_ for id_, versions in trial.ledger.versions.items() if _changed(versions)}
    if changed or vanished:
        yield breach(
            "L03",
            "the last two snapshots differ, or a transaction vanished or changed",
            None,
            snapshots=[snapshots[-2].number, snapshots[-1].number],
            transactions=sorted(changed) or vanished,
        )
    for transaction in snapshots[-1].rows.values():
        if transaction.row["status"] == PENDING:
            yield breach("L06", "a transaction is pending", transaction.where, transaction_id=transaction.id)
    for id_, versions in trial.ledger.versions.items():
        for version in versions:
            status = version.row["status"]
            if status not in (EFFECT, NO_EFFECT, PENDING):
                yield breach("L05", f"unknown status {status[:40]!r}", version.where, transaction_id=id_)
                break


def _changed(versions) -> bool:
    """Whether a transaction that was settled is later shown otherwise; what is pending may still change."""
    rows = [version.row for version in versions]
    return any(
        before["status"] != PENDING and before != after for before, after in zip(rows, rows[1:], strict=False)
    )


RULE = Rule("ledger_settled", COMPLETE, frozenset({"ledger"}), check)
