"""One SQS delivery, read strictly before anything is sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from lambdas.shared import strict
from lambdas.shared.strict import Malformed


@dataclass(frozen=True)
class RefundRequest:
    """The approved refund, in minor units."""

    refund_request_id: str
    payment_id: str
    captured_minor: int
    approved_minor: int
    currency: str

    @classmethod
    def parse(cls, value: object) -> Self:
        fields = strict.exact_keys("request", value, cls.__dataclass_fields__)
        request = cls(
            refund_request_id=strict.text(fields["refund_request_id"], "refund_request_id"),
            payment_id=strict.text(fields["payment_id"], "payment_id"),
            captured_minor=strict.whole(fields["captured_minor"], "captured_minor"),
            approved_minor=strict.whole(fields["approved_minor"], "approved_minor"),
            currency=strict.currency(fields["currency"], "currency"),
        )
        if request.approved_minor > request.captured_minor:
            raise Malformed(
                f"approved_minor: expected at most the captured {request.captured_minor}, "
                f"found {request.approved_minor}"
            )
        return request


@dataclass(frozen=True)
class Delivery:
    """One receive of the message of a trial."""

    trial_id: str
    request: RefundRequest
    delivery_id: str
    receive_count: int

    @classmethod
    def parse(cls, event: Mapping[str, Any]) -> Self:
        records = event.get("Records")
        if not isinstance(records, list) or len(records) != 1:
            found = len(records) if isinstance(records, list) else "none"
            raise Malformed(f"Records: expected exactly 1 record, found {found}")
        record = records[0]
        body = strict.exact_keys("message", strict.load_object(record["body"]), {"trial_id", "request"})
        return cls(
            trial_id=strict.text(body["trial_id"], "trial_id"),
            request=RefundRequest.parse(body["request"]),
            delivery_id=strict.text(record["messageId"], "messageId"),
            receive_count=int(record["attributes"]["ApproximateReceiveCount"]),
        )
