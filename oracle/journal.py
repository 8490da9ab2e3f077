"""The trial's journal as read: numbered events, the counter, the request's state, the barrier (section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle.dynamo import Undecodable, check_query, item_place, items_of, plain
from oracle.finding import Finding, Where, breach
from oracle.reads import Record, whole
from oracle.shape import Shape

_CITES = {"caused_by": str}
_ATTEMPT = {"attempt": int, **_CITES}
TYPES = {
    ("runner", "trial_opened"): {},
    ("runner", "barrier_armed"): {},
    ("runner", "message_send_started"): {},
    ("runner", "message_sent"): {"delivery_id": str},
    ("runner", "probe_invoked"): {},
    ("runner", "trial_closed"): {},
    ("caller", "delivery_received"): {"delivery_id": str, "receive_count": int, "lambda_request_id": str},
    ("caller", "dispatch_started"): {**_ATTEMPT, "delivery_id": str, "lambda_request_id": str},
    ("caller", "response_received"): {**_CITES, "transaction_id": str, "elapsed_ms": int},
    ("caller", "caller_timeout_recorded"): {
        **_CITES,
        "elapsed_ms": int,
        "detail": Shape({"deadline_ms": int}),
    },
    ("caller", "attempt_failed"): {**_CITES, "detail": Shape({"code": str})},
    ("caller", "outcome_unknown"): _CITES,
    ("caller", "request_finished"): _CITES,
    ("provider", "provider_request_received"): {**_ATTEMPT, "lambda_request_id": str},
    ("provider", "provider_commit_confirmed"): {
        **_ATTEMPT,
        "transaction_id": str,
        "detail": Shape({"barrier": str}),
    },
    ("provider", "response_sent"): _CITES,
    ("provider", "response_released"): _CITES,
    ("provider", "barrier_expired"): {},
    ("release", "release_signalled"): _CITES,
    ("release", "release_refused"): {},
}
OUTCOMES = ("response_received", "caller_timeout_recorded", "attempt_failed", "outcome_unknown")
# The only provider codes that say "this did not happen"; any other failure is unknown (CASES D01).
DEFINITE_CODES = frozenset({"INVALID_REQUEST"})
_EVENT = {
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
_COMMON = Shape(_EVENT)
_OWN = {
    name: Shape({**{key: kind for key, kind in _EVENT.items() if key.rstrip("?") not in members}, **members})
    for name, members in TYPES.items()
}
_COUNTER = Shape({"trial_id": str, "n": int})
_REQUEST = Shape(
    {
        "trial_id": str,
        "refund_request_id": str,
        "status": str,
        "reason?": str,
        "effect_knowledge?": str,
    }
)
_GET_MEMBERS = {"TableName", "Key", "ConsistentRead", "ReturnConsumedCapacity"}
_BARRIER = Shape({"trial_id": str, "state": str, "armed_event_id": str})


class Event:
    """One event as it lies in the evidence; its place is worked out only when somebody asks."""

    __slots__ = ("page", "position", "row", "seq", "id", "type", "cites")

    def __init__(self, page: Record, position: int, row: dict):
        self.page, self.position, self.row = page, position, row
        self.seq, self.id, self.type, self.cites = (
            row["seq"],
            row["event_id"],
            row["type"],
            row.get("caused_by"),
        )

    @property
    def where(self) -> Where:
        return item_place(self.page, self.position)

    def witness(self) -> dict:
        return {"seq": self.seq, "event_id": self.id, **self.where.as_json()}


@dataclass(slots=True)
class Journal:
    """`whole` is true only if every event 1..n was read consistently and decoded: then absence is a fact."""

    events: list[Event] = field(default_factory=list)
    counter: dict | None = None
    request: dict | None = None
    barrier: dict | None = None
    barrier_read: bool = False
    whole: bool = False
    findings: list[Finding] = field(default_factory=list)
    _by_type: dict[str, list[Event]] = field(default_factory=dict)
    _by_cause: dict[str | None, list[Event]] = field(default_factory=dict)

    def of_type(self, *types: str) -> list[Event]:
        """The events of these types, in sequence order."""
        if len(types) == 1:
            return self._by_type.get(types[0], [])
        return [event for event in self.events if event.type in types]

    def citing(self, event: Event, *types: str) -> list[Event]:
        """The events of these types that name this one as their cause."""
        return [other for other in self._by_cause.get(event.id, ()) if other.type in types]

    def arrange(self) -> None:
        """Put the decoded events in order; called once, before anybody looks."""
        self.events.sort(key=lambda event: event.seq)
        for event in self.events:
            self._by_type.setdefault(event.type, []).append(event)
            self._by_cause.setdefault(event.cites, []).append(event)


def decode_journal(records: list[Record], trial_id: str, outputs: dict) -> Journal:
    journal = Journal()
    pages, findings = whole([record for record in records if record.read == "journal"])
    for page in pages:
        findings.extend(check_query(page, outputs.get("JournalTable"), trial_id))
        for position, item in enumerate(items_of(page)):
            findings.extend(_item(journal, page, position, item, trial_id))
    journal.arrange()
    findings.extend(_sequence(journal, pages))
    journal.whole = bool(pages) and not findings
    findings.extend(
        _barrier(journal, [record for record in records if record.read == "barrier"], trial_id, outputs)
    )
    journal.findings = findings
    return journal


def _item(journal: Journal, page: Record, position: int, item, trial_id: str) -> list[Finding]:
    try:
        row = plain(item)
    except Undecodable as bad:
        return [breach("G01", str(bad), item_place(page, position))]
    shape, name = _shape_of(row)
    problem = shape.problem(row)
    # An event that is not of its type's form still holds its place in the sequence.
    placed = problem is None or name is None and shape is not _COMMON and _COMMON.problem(row) is None
    if placed and row["trial_id"] != trial_id:
        problem, placed = ("/trial_id", "the item is of another trial"), False
    if placed and name is None and row["entry"] != f"EVENT#{row['seq']:06d}":
        problem, placed = ("/entry", "the key is not the sequence number's"), False
    if placed and name is None:
        journal.events.append(Event(page, position, row))
    elif placed and getattr(journal, name) is not None:
        problem = ("/entry", f"a second {name} item")
    elif placed:
        setattr(journal, name, row)
    if problem is not None:
        return [
            breach("G01", problem[1], item_place(page, position).within(problem[0]), entry=row.get("entry"))
        ]
    if shape is _COMMON:
        sentence = f"{row['source'][:40]} has no event {row['type'][:40]!r}"
        return [breach("G06", sentence, item_place(page, position), seq=row["seq"])]
    return []


def _shape_of(row: dict) -> tuple[Shape, str | None]:
    """The form that an item must have, and the member of Journal it fills if it is no event."""
    entry, kind = row.get("entry"), (row.get("source"), row.get("type"))
    if entry == "COUNTER":
        return _COUNTER, "counter"
    if entry == "REQUEST":
        return _REQUEST, "request"
    named = type(kind[0]) is str and type(kind[1]) is str
    return _OWN.get(kind, _COMMON) if named else _COMMON, None


def _sequence(journal: Journal, pages: list[Record]):
    """Events 1..n and counter n prove that nothing is missing; anything else proves nothing."""
    found = [event.seq for event in journal.events]
    counter = journal.counter["n"] if journal.counter else None
    where = pages[0].where if pages else None
    if found != list(range(1, len(found) + 1)) or not found:
        missing = sorted(set(range(1, max(found, default=0) + 1)) - set(found))[:8]
        yield breach("G02", f"expected events 1..n, found {len(found)} events", where, missing=missing)
    elif counter != found[-1]:
        sentence = f"the last event is {found[-1]}, the counter says {counter}"
        yield breach("G03", sentence, where, seq=found[-1], counter=counter)
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
        record.request.get("Key") != {"trial_id": {"S": trial_id}} or not set(record.request) <= _GET_MEMBERS
    ):
        yield breach("R06", "the barrier was not read by the trial's key", record.where / "request")
    elif outputs.get("BarrierTable") not in (None, record.request.get("TableName")):
        yield breach("R09", "expected the stack's barrier table", record.where / "request" / "TableName")
    elif not findings:
        yield from _barrier_item(journal, record, trial_id)


def _barrier_item(journal: Journal, record: Record, trial_id: str):
    item = record.response.get("Item")
    try:
        journal.barrier = None if item is None else plain(item)
        problem = _BARRIER.problem(journal.barrier) if item is not None else None
        if problem is None and item is not None and journal.barrier["trial_id"] != trial_id:
            problem = ("/trial_id", "it is of another trial")
    except Undecodable as bad:
        problem = ("", str(bad))
    if problem is not None:
        yield breach("G01", f"the barrier item: {problem[1]}", record.where / "response" / "Item")
        journal.barrier = None
    else:
        journal.barrier_read = True
