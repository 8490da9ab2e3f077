"""A trial's timeline, joined from four independent sources: caller, provider, release and durable history.

Journal events keep their sequence; the durable service's own events have no place in it and are set
beside them by the clock, for the reader only. No verdict is read from a timeline.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from oracle.text import money
from oracle.trial import Trial

SHOWN = {
    "dispatch_started",
    "provider_commit_confirmed",
    "caller_timeout_recorded",
    "attempt_failed",
    "outcome_unknown",
    "release_signalled",
    "release_refused",
    "response_released",
    "barrier_expired",
    "response_received",
    "request_finished",
}
HIDDEN = {"ExecutionStarted", "InvocationCompleted"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timeline(trial: Trial) -> list[str]:
    """Lines like those of the article: time, source, event, remark."""
    entries, latest = [], 0
    for event in trial.journal.events:
        # A clock that runs backwards must not undo the sequence.
        latest = max(latest, event.row["at_ms"])
        if event.type in SHOWN:
            entries.append(
                (
                    latest,
                    0,
                    event.seq,
                    event.row["at_ms"],
                    event.row["source"],
                    event.type,
                    remark(trial, event),
                )
            )
    for execution in trial.durable.own:
        for event in execution.events:
            at_ms = _milliseconds(event.get("EventTimestamp"))
            if event["EventType"] not in HIDDEN and at_ms is not None:
                number = event["EventId"]
                entries.append((at_ms, 1, number, at_ms, "durable", event["EventType"], _step(event)))
    return [
        f"{_clock(at_ms)}  {source:<8}  {name:<26}  {note}".rstrip()
        for *_, at_ms, source, name, note in sorted(entries)
    ]


def remark(trial: Trial, event) -> str:
    """What a reader wants to know of an event, in a few words."""
    row = event.row
    if event.type == "provider_commit_confirmed":
        effect = next((e for e in trial.ledger.effects() if e.id == row.get("transaction_id")), None)
        if effect is None or not effect.full:
            return "not in the ledger"
        return f"{money(effect.row['amount_minor'], effect.row['currency'])} in the ledger"
    if event.type == "caller_timeout_recorded":
        return f"{row.get('elapsed_ms')} ms without a response"
    if event.type == "response_received":
        return f"after {row.get('elapsed_ms')} ms"
    return f"attempt {row['attempt']}" if "attempt" in row else ""


def _step(event: dict) -> str:
    details = event.get(f"{event['EventType']}Details")
    retry = details.get("RetryDetails") if isinstance(details, dict) else None
    if not isinstance(retry, dict):
        return str(event.get("Name") or "") if event["EventType"].startswith("Step") else ""
    delay = retry.get("NextAttemptDelaySeconds")
    return f"attempt {retry.get('CurrentAttempt')}" + (f", next in {delay} s" if delay is not None else "")


def _milliseconds(text) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return (moment - _EPOCH) // timedelta(milliseconds=1) if moment.tzinfo else None


def _clock(at_ms: int) -> str:
    seconds, milliseconds = divmod(at_ms, 1000)
    minutes, seconds = divmod(seconds % 86_400, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{milliseconds:03d}"
