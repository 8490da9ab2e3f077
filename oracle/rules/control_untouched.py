"""V08, V09: a CONTROL has no timeout, no unknown outcome and no barrier. Least evidence: whole journal and
barrier read.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import VALIDITY, Rule

BARRIER_EVENTS = (
    "barrier_armed",
    "release_signalled",
    "release_refused",
    "response_released",
    "barrier_expired",
)


def check(trial):
    for dispatch in trial.unknown_dispatches():
        yield breach(
            "V08",
            "a dispatch of a CONTROL ended without a definite outcome",
            None,
            **dispatch.witness(),
            outcomes=[f"{event.type}@{event.seq}" for event in trial.outcomes(dispatch)],
        )
    held = [
        event
        for event in trial.journal.of_type("provider_commit_confirmed")
        if event.row["detail"]["barrier"] != "NONE"
    ]
    for event in trial.journal.of_type(*BARRIER_EVENTS) + held:
        yield breach("V09", f"a CONTROL has a {event.type} event", None, **event.witness())
    if trial.journal.barrier is not None or not trial.journal.barrier_read or trial.document["armed"]:
        yield breach("V09", "a CONTROL has a barrier", trial.where / "armed")


RULE = Rule(
    "control_untouched",
    VALIDITY,
    frozenset({"document", "journal"}),
    check,
    lambda trial: not trial.is_treatment,
)
