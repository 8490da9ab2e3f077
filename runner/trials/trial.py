"""What identifies a trial (one scenario x one variant x one refund request), and what happened to it."""

from dataclasses import dataclass, field
from typing import Any

from runner.protocol import Protocol
from runner.records import Reads
from runner.targets.target import Lab


@dataclass
class Trial:
    """What identifies a trial, and what happened to it so far (frozen as trial.json)."""

    trial_id: str
    run_id: str
    kind: str  # "trial" or "probe"
    scenario: str
    variant: str
    message: dict[str, Any] | None = None
    sends: int = 0
    armed: bool = False
    started_at_ms: int = 0
    ended_at_ms: int = 0
    ended_because: str = "error"
    error: str | None = None
    queues: Reads | None = field(default=None, repr=False)
    dlq_before: int | None = None

    def as_json(self, protocol: Protocol, lab: Lab) -> dict[str, Any]:
        """Return trial.json's object, as evidence/FORMAT.md describes it."""
        quiescence = protocol.quiescence
        return {
            "trial_id": self.trial_id,
            "run_id": self.run_id,
            "kind": self.kind,
            "scenario": self.scenario,
            "variant": self.variant,
            "request": refund_request(protocol),
            "armed": self.armed,
            "message": self.message,
            "queues": {"source": lab.queue_url(self.variant), "dlq": lab.dlq_url(self.variant)},
            "started_at_ms": self.started_at_ms,
            "ended_at_ms": self.ended_at_ms,
            "ended_because": self.ended_because,
            "quiescence": {"samples": quiescence.samples, "interval_s": quiescence.interval_s},
            # The driver is itself a possible retrier and observer (CASES D12, D15): these
            # say what it did, and the journal's message events say it again.
            "driver": {"total_max_attempts": 1, "sends": self.sends, "source_queue_receives": 0},
            "error": self.error,
        }


def refund_request(protocol: Protocol) -> dict[str, Any]:
    """Return the approved refund of the protocol; amounts in minor units."""
    r = protocol.refund
    return {
        "refund_request_id": r.refund_request_id,
        "payment_id": r.payment_id,
        "captured_minor": r.captured_minor,
        "approved_minor": r.approved_minor,
        "currency": r.currency,
    }
