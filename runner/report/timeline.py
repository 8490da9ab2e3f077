"""The joined timeline: caller, provider, release controller, runner and durable history in one table.

Journal events keep their sequence. The durable service's own events have no place in it and are set
beside them by the clock, for the reader only.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from runner.money import unbroken
from runner.report.story import KEY_EVENTS, MINOR_HISTORY, Event, Story

GAP_S = 10  # a longer silence gets a row of its own: it is where the retry waits
SOURCES = ("caller", "provider", "release", "durable", "runner")


@dataclass(frozen=True)
class Line:
    """One row of the timeline."""

    number: str  # sequence number of a journal event, or H and the id of a history event
    since_s: str
    utc: str
    source: str
    type: str
    remark: str
    key: bool
    gap_s: float | None = None


def lines(story: Story, keys_only: bool) -> list[Line]:
    """Return the timeline, whole or only the events that tell the story."""
    entries: list[tuple[tuple[int, int, int], int, tuple[Any, ...]]] = []
    latest = 0
    for event in story.events:
        # A clock that runs backwards must not undo the sequence.
        latest = max(latest, event.at_ms)
        fields = (str(event.seq), event.source, event.type, _remark(story, event), event.type in KEY_EVENTS)
        entries.append(((latest, 0, event.seq), event.at_ms, fields))
    for moment in story.history:
        fields = (
            f"H{moment.event_id}",
            "durable",
            moment.type,
            moment.remark,
            moment.type not in MINOR_HISTORY,
        )
        entries.append(((moment.at_ms, 1, moment.event_id), moment.at_ms, fields))
    entries.sort(key=lambda entry: entry[0])
    found: list[Line] = []
    before: int | None = None
    for (order_ms, *_), at_ms, (number, source, kind, remark, key) in entries:
        if keys_only and not key:
            continue
        silence = 0.0 if before is None else (order_ms - before) / 1000
        gap = silence if silence >= GAP_S else None
        found.append(Line(number, f"{story.since_s(at_ms):+.3f}", utc(at_ms), source, kind, remark, key, gap))
        before = order_ms
    return found


def _remark(story: Story, event: Event) -> str:
    row = event.row
    elapsed = row.get("elapsed_ms")
    if event.type == "provider_commit_confirmed":
        effect = next((e for e in story.effects if e.transaction_id == row.get("transaction_id")), None)
        return (
            f"{unbroken(effect.amount_minor, effect.currency)} in the ledger"
            if effect
            else "not in the ledger"
        )
    if event.type == "caller_timeout_recorded":
        return f"{elapsed} ms without an answer"
    if event.type == "response_received":
        return f"after {elapsed} ms"
    if event.type == "delivery_received":
        return f"receive {row.get('receive_count')}"
    return f"attempt {row['attempt']}" if "attempt" in row else ""


def utc(at_ms: int, date: bool = False) -> str:
    """A wall-clock time for display; empty if no calendar holds it."""
    try:
        moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    form = "%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S."
    return moment.strftime(form) + (" UTC" if date else f"{at_ms % 1000:03d}")
