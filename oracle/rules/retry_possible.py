"""V15: after the timeout the architecture could try again: it did, or a retry was scheduled.

Least evidence: a whole journal; for a scheduled durable retry also the history.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import VALIDITY, Rule


def check(trial):
    timeouts = trial.journal.of_type("caller_timeout_recorded")
    if not timeouts:
        return  # the treatment did not fire, which V16 says
    after = [
        event
        for event in trial.journal.of_type("dispatch_started", "delivery_received")
        if event.seq > timeouts[0].seq
    ]
    if not after and not any(map(_scheduled, trial.durable.events("StepFailed"))):
        yield breach(
            "V15",
            "no second dispatch and no scheduled retry",
            None,
            timeouts=[event.seq for event in timeouts],
        )


def _scheduled(event) -> bool:
    details = event.get("StepFailedDetails")
    retry = details.get("RetryDetails") if isinstance(details, dict) else None
    return isinstance(retry, dict) and type(retry.get("NextAttemptDelaySeconds")) is int


RULE = Rule(
    "retry_possible",
    VALIDITY,
    frozenset({"journal"}),
    check,
    lambda trial: trial.is_treatment and not trial.claims_probe,
)
