"""What the system under test believes, beside what the ledger says: processing, knowledge, belief.

None of it decides an effect: a system that refunded twice reports success too.
"""

from __future__ import annotations

from collections import Counter

from oracle.trial import Trial

UNKNOWN, KNOWN = "UNKNOWN", "KNOWN"
_REASONS = ("SUCCEEDED", "PROVIDER_REFUSED")


def processing(trial: Trial) -> str:
    """How the request ended, from the caller's own state; the DLQ only speaks for a request that did not
    finish.
    """
    state = trial.journal.request or {}
    if state.get("status") == "FINISHED":
        return state["reason"] if state.get("reason") in _REASONS else UNKNOWN
    if dead_lettered(trial):
        return "DEAD_LETTERED"
    return "IN_PROGRESS" if state.get("status") == "IN_PROGRESS" else UNKNOWN


def dead_lettered(trial: Trial) -> bool:
    """Whether the last two DLQ samples agree that a message lies there."""
    counts = [sample.counts for sample in trial.queues.dlq[-2:]]
    return len(counts) == 2 and counts[0] == counts[1] and (counts[0][0] or 0) > 0


def effect_knowledge(trial: Trial) -> str:
    """KNOWN only if every dispatch has a definite outcome; the first doubt is never left (CASES D01)."""
    if not trial.journal.whole or not trial.dispatches() or trial.unknown_dispatches():
        return UNKNOWN
    return KNOWN


def belief(trial: Trial) -> dict:
    """The system's own words: request state, knowledge, executions by status, messages in the DLQ."""
    state = trial.journal.request or {}
    last = trial.queues.dlq[-1].counts[0] if trial.queues.dlq else None
    return {
        "status": state.get("status"),
        "reason": state.get("reason"),
        "effect_knowledge": state.get("effect_knowledge"),
        "dlq_messages": last,
        "executions": dict(Counter(execution.terminal or "RUNNING" for execution in trial.durable.own)),
    }
