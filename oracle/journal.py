"""The trial's journal as read: numbered events, the counter, the request's state, the barrier (section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle.dynamo import Undecodable, check_query, items_of, plain
from oracle.finding import Finding, Where, breach
from oracle.reads import Record, whole
from oracle.shape import problems

_CITES = {"caused_by": str}
_ATTEMPT = {"attempt": int, **_CITES}
TYPES = {
    "runner": {
        "trial_opened": {},
        "barrier_armed": {},
        "message_send_started": {},
        "message_sent": {"delivery_id": str},
        "probe_invoked": {},
        "trial_closed": {},
    },
    "caller": {
        "delivery_received": {"delivery_id": str, "receive_count": int, "lambda_request_id": str},
        "dispatch_started": {**_ATTEMPT, "delivery_id": str, "lambda_request_id": str},
        "response_received": {**_CITES, "transaction_id": str, "elapsed_ms": int},
        "caller_timeout_recorded": {**_CITES, "elapsed_ms": int, "detail": {"deadline_ms": int}},
        "attempt_failed": {**_CITES, "detail": {"code": str}},
        "outcome_unknown": _CITES,
        "request_finished": _CITES,
    },
    "provider": {
        "provider_request_received": {**_ATTEMPT, "lambda_request_id": str},
        "provider_commit_confirmed": {**_ATTEMPT, "transaction_id": str, "detail": {"barrier": str}},
        "response_sent": _CITES,
        "response_released": _CITES,
        "barrier_expired": {},
    },
    "release": {"release_signalled": _CITES, "release_refused": {}},
}
OUTCOMES = ("response_received", "caller_timeout_recorded", "attempt_failed", "outcome_unknown")
# The only provider codes that say "this did not happen"; any other failure is unknown (CASES D01).
DEFINITE_CODES = frozenset({"INVALID_REQUEST"})
_COMMON = {
    "trial_id": str,
    "entry": str,
    "seq": int,
    "event_id": str,
    "source": str,
    "type": str,
    "at_ms": int,
    "caused_by?": str,
    "attempt?": int,
    "detail?": dict,
}
_COUNTER = {"trial_id": str, "n": int}
_REQUEST = {
    "trial_id": str,
    "refund_request_id": str,
    "status": str,
    "reason?": str,
    "effect_knowledge?": str,
}
_BARRIER = {"trial_id": str, "state": str, "armed_event_id": str}


@dataclass(slots=True)
class Event:
    where: Where
    row: dict

    @property
    def seq(self) -> int:
        return self.row["seq"]

    @property
    def id(self) -> str:
        return self.row["event_id"]

    @property
    def type(self) -> str:
        return self.row["type"]

    @property
    def cites(self) -> str | None:
        return self.row.get("caused_by")

    def witness(self) -> dict:
        return {"seq": self.seq, "event_id": self.id, **self.where.as_json()}


@dataclass(slots=True)
class Journal:
    """`whole` is true only if every event 1..n was read consistently and decoded: then absence is a fact."""

    events: list[Event] = field(default_factory=list)
    counter: int | None = None
    request: dict | None = None
    barrier: dict | None = None
    barrier_read: bool = False
    whole: bool = False
    findings: list[Finding] = field(default_factory=list)

    def of_type(self, *types: str) -> list[Event]:
        return [event for event in self.events if event.type in types]

    def citing(self, event: Event, *types: str) -> list[Event]:
        return [other for other in self.of_type(*types) if other.cites == event.id]


def decode_journal(records: list[Record], trial_id: str, outputs: dict) -> Journal:
    journal = Journal()
    pages, findings = whole([record for record in records if record.read == "journal"])
    for page in pages:
        findings.extend(check_query(page, outputs.get("JournalTable"), trial_id))
        for position, item in enumerate(items_of(page)):
            findings.extend(_item(journal, page.where / "response" / "Items" / position, item, trial_id))
    journal.events.sort(key=lambda event: event.seq)
    findings.extend(_sequence(journal, pages))
    journal.whole = bool(pages) and not findings
    findings.extend(
        _barrier(journal, [record for record in records if record.read == "barrier"], trial_id, outputs)
    )
    journal.findings = findings
    return journal


def _item(journal: Journal, where: Where, item, trial_id: str):
    try:
        row = plain(item)
    except Undecodable as bad:
        yield breach("G01", str(bad), where)
        return
    entry = row.get("entry")
    shape = _COUNTER if entry == "COUNTER" else _REQUEST if entry == "REQUEST" else _COMMON
    problem = next(problems(row, shape), None)
    if problem is None and row["trial_id"] != trial_id:
        problem = ("/trial_id", "the item is of another trial")
    if problem is None and shape is _COMMON and entry != f"EVENT#{row['seq']:06d}":
        problem = ("/entry", "the key is not the sequence number's")
    if problem is not None:
        yield breach("G01", problem[1], Where(where.path, where.pointer + problem[0]))
    elif shape is _COUNTER and journal.counter is None:
        journal.counter = row["n"]
    elif shape is _REQUEST and journal.request is None:
        journal.request = row
    elif shape is not _COMMON:
        yield breach("G01", f"a second {entry} item", where)
    else:
        yield from _event(journal, Event(where, row))


def _event(journal: Journal, event: Event):
    journal.events.append(event)  # even a strange one holds its place in the sequence
    shape = TYPES.get(event.row["source"], {}).get(event.type)
    if shape is None:
        yield breach(
            "G06", f"{event.row['source']} has no event type {event.type[:40]!r}", event.where, seq=event.seq
        )
        return
    problem = next(problems(event.row, shape), None)
    if problem is not None:
        yield breach(
            "G01", problem[1], Where(event.where.path, event.where.pointer + problem[0]), seq=event.seq
        )


def _sequence(journal: Journal, pages: list[Record]):
    """Events 1..n and counter n prove that nothing is missing; anything else proves nothing."""
    found = [event.seq for event in journal.events]
    where = pages[0].where if pages else None
    if found != list(range(1, len(found) + 1)) or not found:
        missing = sorted(set(range(1, max(found, default=0) + 1)) - set(found))[:8]
        yield breach("G02", f"expected events 1..n, found {len(found)} events", where, missing=missing)
    elif journal.counter != found[-1]:
        yield breach(
            "G03",
            f"the last event is {found[-1]}, the counter says {journal.counter}",
            where,
            seq=found[-1],
            counter=journal.counter,
        )
    seen: dict[str, int] = {}
    for event in journal.events:
        if event.id in seen:
            yield breach(
                "G04", f"event id {event.id} is used twice", event.where, seqs=[seen[event.id], event.seq]
            )
        elif event.cites is not None and event.cites not in seen:
            yield breach(
                "G04",
                f"event {event.seq} cites {event.cites}, which is not before it",
                event.where,
                seq=event.seq,
            )
        seen.setdefault(event.id, event.seq)
    types = [event.type for event in journal.events]
    if types and (
        types[0] != "trial_opened"
        or types[-1] != "trial_closed"
        or types.count("trial_opened") != 1
        or types.count("trial_closed") != 1
    ):
        yield breach(
            "G05", "the journal does not run from trial_opened to trial_closed", where, last=types[-1]
        )


def _barrier(journal: Journal, records: list[Record], trial_id: str, outputs: dict):
    pages, findings = whole(records)
    yield from findings
    if not pages:
        yield breach("R08", "the barrier was not read", None, trial_id=trial_id)
        return
    record = pages[0]
    if record.error:
        return
    if record.request.get("ConsistentRead") is not True:
        yield breach("R05", "the barrier was read eventually consistent", record.where / "request")
    elif (
        record.request.get("Key") != {"trial_id": {"S": trial_id}} or "ProjectionExpression" in record.request
    ):
        yield breach("R06", "the barrier was not read by the trial's key", record.where / "request")
    elif outputs.get("BarrierTable") not in (None, record.request.get("TableName")):
        yield breach("R09", "expected the stack's barrier table", record.where / "request" / "TableName")
    elif not findings:
        yield from _barrier_item(journal, record)


def _barrier_item(journal: Journal, record: Record):
    item = record.response.get("Item")
    try:
        journal.barrier = None if item is None else plain(item)
        problem = next(problems(journal.barrier, _BARRIER), None) if item is not None else None
    except Undecodable as bad:
        problem = ("", str(bad))
    if problem is not None:
        yield breach("G01", f"the barrier item: {problem[1]}", record.where / "response" / "Item")
        journal.barrier = None
    else:
        journal.barrier_read = True
