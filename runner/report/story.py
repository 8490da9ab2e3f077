"""What happened in one trial, as the frozen journal, ledger and durable history tell it.

For display only: a row that is not well formed is left out and counted, and nothing here decides.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from runner.report.evidence import Evidence

OUTCOMES = {
    "response_received": "answered",
    "caller_timeout_recorded": "gave up",
    "attempt_failed": "refused",
    "outcome_unknown": "unknown",
}
KEY_EVENTS = {
    *OUTCOMES,
    "dispatch_started",
    "provider_commit_confirmed",
    "release_signalled",
    "release_refused",
    "response_released",
    "barrier_expired",
    "request_finished",
}
MINOR_HISTORY = {"ExecutionStarted", "InvocationCompleted"}


@dataclass(frozen=True)
class Event:
    """One journal entry. `row` holds every attribute as a plain value."""

    seq: int
    source: str
    type: str
    at_ms: int
    row: dict[str, Any]


@dataclass(frozen=True)
class Effect:
    """A successful transaction in the provider's ledger."""

    transaction_id: str
    amount_minor: int
    currency: str
    at_ms: int
    seq: int


@dataclass(frozen=True)
class Attempt:
    """One dispatch to the provider and how it ended for the caller."""

    number: int
    seq: int
    elapsed_ms: int | None
    outcome: str


@dataclass(frozen=True)
class History:
    """One event of the durable service's own history; it has no place in the sequence."""

    event_id: int
    type: str
    at_ms: int
    remark: str


@dataclass
class Story:
    """Everything the page shows of one trial beside the oracle's words."""

    events: list[Event] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    history: list[History] = field(default_factory=list)
    read_until_ms: int = 0
    left_out: int = 0

    @property
    def zero_ms(self) -> int:
        """Where the trial's own clock starts: the first dispatch, else the first event."""
        dispatches = [e.at_ms for e in self.events if e.type == "dispatch_started"]
        return (dispatches or [e.at_ms for e in self.events] or [0])[0]

    def since_s(self, at_ms: int) -> float:
        """Seconds since the first dispatch."""
        return (at_ms - self.zero_ms) / 1000

    def of_type(self, name: str) -> list[Event]:
        """Journal events of one type, in sequence."""
        return [e for e in self.events if e.type == name]

    def attempts(self) -> list[Attempt]:
        """Every dispatch with the outcome that cites it; the dispatch's event is its identity."""
        outcomes: dict[str, Event] = {}
        for event in self.events:
            if event.type in OUTCOMES:
                outcomes.setdefault(str(event.row.get("caused_by")), event)
        found = []
        for number, dispatch in enumerate(self.of_type("dispatch_started"), start=1):
            end = outcomes.get(str(dispatch.row.get("event_id")))
            elapsed = end.row.get("elapsed_ms") if end else None
            outcome = OUTCOMES[end.type] if end else "no outcome recorded"
            found.append(
                Attempt(number, dispatch.seq, elapsed if isinstance(elapsed, int) else None, outcome)
            )
        return found


def read_story(evidence: Evidence, trial: dict[str, Any]) -> Story:
    """Read the story of a trial that the oracle lists."""
    story, folder = Story(), f"trials/{trial['trial_id']}"
    for row in _items(evidence, f"{folder}/journal.jsonl", "journal", story):
        _add_event(story, row)
    story.events.sort(key=lambda event: event.seq)
    rows: dict[str, Effect] = {}
    for row in _items(evidence, f"{folder}/ledger.jsonl", "ledger_snapshot_", story):
        _add_effect(rows, row, story)
    story.effects = sorted(rows.values(), key=lambda effect: effect.seq)
    own = set(_own_executions(evidence, folder, trial["trial_id"]))
    seen = set()
    for record in evidence.records(f"{folder}/durable.jsonl", "history"):
        for raw in _list(record.get("Events")) if record["of"] in own else ():
            event = _history(raw)
            if event is not None and (record["of"], event.event_id) not in seen:
                seen.add((record["of"], event.event_id))
                story.history.append(event)
    return story


def _items(evidence: Evidence, name: str, read: str, story: Story) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for record in evidence.records(name, read):
        if isinstance(record["at_ms"], int):
            story.read_until_ms = max(story.read_until_ms, record["at_ms"])
        for item in _list(record.get("Items")):
            try:
                row = {key: _plain(value) for key, value in item.items()}
            except (AttributeError, TypeError, ValueError):
                story.left_out += 1
                continue
            # Pages may be repeated, and each snapshot repeats the one before.
            same = json.dumps(row, sort_keys=True)
            if same not in seen:
                seen.add(same)
                yield row


def _own_executions(evidence: Evidence, folder: str, trial_id: str) -> Iterator[Any]:
    """Yield the executions whose input is an SQS event with a message that names the trial."""
    for record in evidence.records(f"{folder}/durable.jsonl", "execution"):
        try:
            messages = json.loads(record["InputPayload"])["Records"]
            named = {json.loads(message["body"])["trial_id"] for message in messages}
        except (KeyError, TypeError, ValueError, RecursionError):
            continue
        if trial_id in named:
            yield record["of"]


def _add_event(story: Story, row: dict[str, Any]) -> None:
    if "seq" not in row and row.get("entry") in ("COUNTER", "REQUEST"):
        return
    shape = {"seq": int, "at_ms": int, "source": str, "type": str, "event_id": str}
    if all(isinstance(row.get(name), kind) for name, kind in shape.items()):
        story.events.append(Event(row["seq"], row["source"], row["type"], row["at_ms"], row))
    else:
        story.left_out += 1


def _add_effect(rows: dict[str, Effect], row: dict[str, Any], story: Story) -> None:
    shape = {
        "transaction_id": str,
        "amount_minor": int,
        "currency": str,
        "committed_at_ms": int,
        "seq": int,
    }
    if not all(isinstance(row.get(name), kind) for name, kind in shape.items()):
        story.left_out += 1
    elif row.get("status") == "SUCCEEDED":
        key, amount, currency, at_ms, seq = (row[name] for name in shape)
        rows[key] = Effect(key, amount, currency, at_ms, seq)


def _history(raw: Any) -> History | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("EventId"), int):
        return None
    kind = str(raw.get("EventType"))
    try:
        moment = datetime.fromisoformat(str(raw.get("EventTimestamp")))
    except ValueError:
        return None
    details = raw.get(f"{kind}Details")
    retry = details.get("RetryDetails") if isinstance(details, dict) else None
    remark = str(raw.get("Name") or "") if kind.startswith("Step") else ""
    if isinstance(retry, dict):
        remark = f"attempt {retry.get('CurrentAttempt')}"
        if retry.get("NextAttemptDelaySeconds") is not None:
            remark += f", next in {retry['NextAttemptDelaySeconds']} s"
    return History(raw["EventId"], kind, int(moment.timestamp() * 1000), remark)


def _plain(value: dict[str, Any]) -> Any:
    """A low-level DynamoDB value as a plain one; raises ValueError for anything else."""
    ((kind, inner),) = value.items()
    if kind == "N":
        return int(inner)
    if kind == "M":
        return {key: _plain(part) for key, part in inner.items()}
    if kind == "S" and not isinstance(inner, str):
        raise ValueError(kind)
    return inner


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
