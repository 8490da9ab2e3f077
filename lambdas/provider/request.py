"""What a caller sends to the provider, read strictly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from lambdas.shared import strict

ENVELOPE_KEYS = ("trial_id", "dispatch_event_id", "attempt", "delivery_id")
MONEY_KEYS = ("refund_request_id", "payment_id", "amount_minor", "currency")


@dataclass(frozen=True)
class Envelope:
    """Who calls: enough to record that a request arrived, whatever it asks for."""

    trial_id: str
    dispatch_event_id: str
    attempt: int
    delivery_id: str

    @classmethod
    def parse(cls, event: object) -> Self:
        fields = strict.exact_keys("provider request", event, (*ENVELOPE_KEYS, *MONEY_KEYS))
        return cls(
            trial_id=strict.text(fields["trial_id"], "trial_id"),
            dispatch_event_id=strict.text(fields["dispatch_event_id"], "dispatch_event_id"),
            attempt=strict.whole(fields["attempt"], "attempt"),
            delivery_id=strict.text(fields["delivery_id"], "delivery_id"),
        )


@dataclass(frozen=True)
class Refund:
    """What is asked for."""

    refund_request_id: str
    payment_id: str
    amount_minor: int
    currency: str

    @classmethod
    def parse(cls, event: Mapping[str, Any]) -> Self:
        return cls(
            refund_request_id=strict.text(event["refund_request_id"], "refund_request_id"),
            payment_id=strict.text(event["payment_id"], "payment_id"),
            amount_minor=strict.whole(event["amount_minor"], "amount_minor"),
            currency=strict.currency(event["currency"], "currency"),
        )
