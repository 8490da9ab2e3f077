"""The provider's ledger as read: snapshots, transactions, and which of them are effects (section 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle.dynamo import Undecodable, check_query, item_place, items_of, plain
from oracle.finding import Finding, Where, breach
from oracle.reads import Record, snapshot_number, whole
from oracle.shape import Shape

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


_NEEDED, _WHOLE = Shape(_REQUIRED), Shape(_FULL)


@dataclass(slots=True)
class Transaction:
    """One version of one ledger item; `full` when every attribute is well formed."""

    page: Record
    position: int
    row: dict
    full: bool

    @property
    def id(self) -> str:
        return self.row["transaction_id"]

    @property
    def where(self) -> Where:
        return item_place(self.page, self.position)


@dataclass(slots=True)
class Snapshot:
    number: int
    at_ms: int
    where: Where
    pages: int
    rows: dict[str, Transaction] = field(default_factory=dict)
    others: list[Transaction] = field(default_factory=list)  # versions that contradict one of `rows`

    def versions(self) -> list[Transaction]:
        return [*self.rows.values(), *self.others]


@dataclass(slots=True)
class Ledger:
    snapshots: list[Snapshot] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    # Every version of every transaction that any snapshot shows, in order of first sight.
    versions: dict[str, list[Transaction]] = field(default_factory=dict)
    _effects: list[Transaction] | None = None

    def take(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        for transaction in snapshot.versions():
            self.versions.setdefault(transaction.id, []).append(transaction)

    def effects(self) -> list[Transaction]:
        """The successful transactions, each once, seen in any snapshot: a stale read hides rows, it invents
        none.

        The version kept is the last full one, so that damage in one snapshot does not hide what another
        shows.
        """
        if self._effects is None:
            chosen = filter(None, map(_effect_of, self.versions.values()))
            self._effects = sorted(chosen, key=lambda effect: effect.row.get("seq") or 0)
        return self._effects

    def contradicted(self, transaction: Transaction) -> bool:
        """Whether two full versions of this transaction differ; then no amount of it is certain."""
        versions = [version.row for version in self.versions[transaction.id] if version.full]
        return any(version != versions[0] for version in versions)


def _effect_of(versions: list[Transaction]) -> Transaction | None:
    successful = [version for version in versions if version.row["status"] == EFFECT]
    return next((version for version in reversed(successful) if version.full), (successful or [None])[-1])


def decode_ledger(records: list[Record], trial_id: str, table: str | None) -> Ledger:
    ledger = Ledger()
    by_number: dict[int, list[Record]] = {}
    for record in records:
        by_number.setdefault(snapshot_number(record.read), []).append(record)
    for number in sorted(by_number):
        pages, findings = whole(by_number[number])
        snapshot = Snapshot(number, pages[0].at_ms, pages[0].where, len(pages))
        for page in pages:
            findings.extend(check_query(page, table, trial_id))
        # Rows come from every page, also from those that contradict another: intact sight of a row is final.
        for page in by_number[number]:
            findings.extend(_rows(page, trial_id, snapshot))
        ledger.take(snapshot)
        ledger.findings.extend(findings)
    return ledger


def _rows(page: Record, trial_id: str, snapshot: Snapshot):
    for position, item in enumerate(items_of(page)):
        row = _row(item)
        problem = _NEEDED.problem(row)
        if problem is None and row["trial_id"] != trial_id:
            problem = ("/trial_id", "the transaction is of another trial")
        if problem is not None:
            yield breach("L01", problem[1], item_place(page, position).within(problem[0]))
            continue
        problem = _WHOLE.problem(row)
        if problem is None and row["amount_minor"] <= 0:
            problem = ("/amount_minor", "the amount is not positive")
        transaction = Transaction(page, position, row, problem is None)
        if problem is not None:
            where = transaction.where.within(problem[0])
            yield breach("L01", problem[1], where, transaction_id=transaction.id)
        if snapshot.rows.setdefault(transaction.id, transaction).row != row:
            snapshot.others.append(transaction)
            sentence = "one transaction occurs twice and differs"
            yield breach("L01", sentence, transaction.where, transaction_id=transaction.id)


def _row(item) -> dict:
    """The attributes that decode; the others are absent, so one bad field hides no transaction."""
    try:
        return plain(item)
    except Undecodable:
        return _decodable(item) if isinstance(item, dict) else {}


def _decodable(item: dict) -> dict:
    row = {}
    for name, value in item.items():
        try:
            row |= plain({name: value})
        except Undecodable:
            continue
    return row
