"""The provider's ledger as read: snapshots, transactions, and which of them are effects (section 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle.dynamo import Undecodable, check_query, items_of, plain
from oracle.finding import Finding, Where, breach
from oracle.reads import Record, snapshot_number, whole
from oracle.shape import problems

EFFECT, NO_EFFECT, PENDING = "SUCCEEDED", "FAILED", "PENDING"
_REQUIRED = {"trial_id": str, "transaction_id": str, "status": str}
_FULL = {
    **_REQUIRED,
    "refund_request_id": str,
    "payment_id": str,
    "amount_minor": int,
    "currency": str,
    "seq": int,
    "dispatch_event_id": str,
    "attempt": int,
    "provider_request_id": str,
    "committed_at_ms": int,
}


@dataclass(slots=True)
class Transaction:
    """One version of one ledger item; `full` when every attribute is well formed."""

    where: Where
    row: dict
    full: bool

    @property
    def id(self) -> str:
        return self.row["transaction_id"]


@dataclass(slots=True)
class Snapshot:
    number: int
    at_ms: int
    rows: dict[str, Transaction] = field(default_factory=dict)


@dataclass(slots=True)
class Ledger:
    snapshots: list[Snapshot] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def versions(self) -> dict[str, list[Transaction]]:
        """Every version of every transaction that any snapshot shows, in order of first sight."""
        seen: dict[str, list[Transaction]] = {}
        for snapshot in self.snapshots:
            for transaction in snapshot.rows.values():
                seen.setdefault(transaction.id, []).append(transaction)
        return seen

    def effects(self) -> list[Transaction]:
        """The successful transactions, each once, seen in any snapshot: a stale read hides rows, it invents
        none.

        The version kept is the last full one, so that damage in one snapshot does not hide what another
        shows.
        """
        effects = []
        for versions in self.versions().values():
            successful = [version for version in versions if version.row["status"] == EFFECT]
            if successful:
                effects.append(next((v for v in reversed(successful) if v.full), successful[-1]))
        return effects

    def contradicted(self, transaction: Transaction) -> bool:
        """Whether two full versions of this transaction differ; then no amount of it is certain."""
        versions = [version.row for version in self.versions()[transaction.id] if version.full]
        return any(version != versions[0] for version in versions)


def decode_ledger(records: list[Record], trial_id: str, table: str | None) -> Ledger:
    ledger = Ledger()
    by_number: dict[int, list[Record]] = {}
    for record in records:
        by_number.setdefault(snapshot_number(record.read), []).append(record)
    for number in sorted(by_number):
        pages, findings = whole(by_number[number])
        snapshot = Snapshot(number, pages[0].at_ms)
        for page in pages:
            findings.extend(check_query(page, table, trial_id))
        # Rows come from every page, also from those that contradict another: intact sight of a row is final.
        for page in by_number[number]:
            findings.extend(_rows(page, trial_id, snapshot))
        ledger.snapshots.append(snapshot)
        ledger.findings.extend(findings)
    return ledger


def _rows(page: Record, trial_id: str, snapshot: Snapshot):
    for position, item in enumerate(items_of(page)):
        where = page.where / "response" / "Items" / position
        row = _tolerant(item)
        problem = next(problems(row, _REQUIRED), None)
        if problem is None and row["trial_id"] != trial_id:
            problem = ("/trial_id", "the transaction is of another trial")
        if problem is not None:
            yield breach("L01", problem[1], Where(page.where.path, where.pointer + problem[0]))
            continue
        problem = next(problems(row, _FULL), None)
        if problem is None and row["amount_minor"] <= 0:
            problem = ("/amount_minor", "the amount is not positive")
        if problem is not None:
            yield breach(
                "L01",
                problem[1],
                Where(page.where.path, where.pointer + problem[0]),
                transaction_id=row["transaction_id"],
            )
        transaction = Transaction(where, row, problem is None)
        twin = snapshot.rows.setdefault(transaction.id, transaction)
        if twin.row != row:
            yield breach(
                "L01", "one transaction occurs twice and differs", where, transaction_id=transaction.id
            )


def _tolerant(item) -> dict:
    """The attributes that decode; the others are absent, so one bad field hides no transaction."""
    row = {}
    for name, value in item.items() if isinstance(item, dict) else ():
        try:
            row |= plain({name: value})
        except Undecodable:
            continue
    return row
