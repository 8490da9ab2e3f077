"""The provider's ledger: put once, never updated, never deleted. Its rows are the only monetary truth."""

from lambdas.provider.request import Envelope, Refund
from lambdas.shared.journal import Companion, Item, typed

SUCCEEDED = "SUCCEEDED"

TRANSACTION_ABSENT = "attribute_not_exists(transaction_id)"  # the id is new: no row is ever written over


def ledger_put(
    table: str, envelope: Envelope, refund: Refund, transaction_id: str, provider_request_id: str, now_ms: int
) -> Companion:
    """The row of one refund, in the transaction of its commit event, whose sequence number it cites."""

    def companion(seq: int, _: str) -> Item:
        row = {
            "trial_id": envelope.trial_id,
            "transaction_id": transaction_id,
            "refund_request_id": refund.refund_request_id,
            "payment_id": refund.payment_id,
            "amount_minor": refund.amount_minor,
            "currency": refund.currency,
            "status": SUCCEEDED,
            "seq": seq,
            "dispatch_event_id": envelope.dispatch_event_id,
            "attempt": envelope.attempt,
            "provider_request_id": provider_request_id,
            "committed_at_ms": now_ms,
        }
        item = {name: typed(value) for name, value in row.items()}
        return {"Put": {"TableName": table, "Item": item, "ConditionExpression": TRANSACTION_ABSENT}}

    return companion
