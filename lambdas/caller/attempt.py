"""One attempt, the same for both callers: write ahead, dispatch, write the outcome.

    delivery_received -> dispatch_started -> (provider) -> response_received -> request_finished
                                                       |-> attempt_failed ----> request_finished
                                                       |-> caller_timeout_recorded, raises
                                                       '-> outcome_unknown, raises

An attempt is identified by its dispatch event, never by its number: counters of SQS and of the
durable service undercount. A dispatch without an outcome (a killed function) is unknown, never
"not attempted". What the caller raises is what makes the architecture's own retry act.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.caller.message import Delivery
from lambdas.shared.journal import REQUEST, Appended, Item, Journal
from lambdas.shared.logs import bound_logger
from lambdas.shared.provider_client import Answered, Outcome, Refused, TimedOut, Unknown

SUCCEEDED = "SUCCEEDED"
PROVIDER_REFUSED = "PROVIDER_REFUSED"

# The clauses of the request state. Knowledge only ever degrades: once unknown, a later success proves
# the later effect alone, so known is written only where nothing stands yet.
IN_PROGRESS = "SET #status = :status, refund_request_id = :id REMOVE #reason"
FINISHED = "SET #status = :status, #reason = :reason"
BECOMES_UNKNOWN = "SET effect_knowledge = :knowledge"
KNOWN_UNLESS_SET = "SET effect_knowledge = if_not_exists(effect_knowledge, :knowledge)"


class EffectUnknown(Exception):
    """The attempt ended without knowing whether money moved."""


class AttemptTimedOut(EffectUnknown):
    """The deadline passed before the whole answer was there."""


class OutcomeUnknown(EffectUnknown):
    """The exchange ended in time, but not with an answer that can be relied on."""


@dataclass(frozen=True)
class Caller:
    """What an attempt works with."""

    journal: Journal
    refund: Callable[[Mapping[str, Any]], Outcome]
    deadline_ms: int


def run_attempt(caller: Caller, delivery: Delivery, attempt: int, lambda_request_id: str) -> str:
    """Dispatch the refund once. Returns why the request is finished; raises when nobody knows."""
    received = caller.journal.append(
        delivery.trial_id,
        "delivery_received",
        attempt=attempt,
        delivery_id=delivery.delivery_id,
        receive_count=delivery.receive_count,
        lambda_request_id=lambda_request_id,
    )
    dispatch = caller.journal.append(
        delivery.trial_id,
        "dispatch_started",
        attempt=attempt,
        delivery_id=delivery.delivery_id,
        lambda_request_id=lambda_request_id,
        caused_by=received.event_id,
        companions=[
            _request_state(
                caller, delivery, IN_PROGRESS, status="IN_PROGRESS", id=delivery.request.refund_request_id
            )
        ],
    )
    log = bound_logger(
        trial_id=delivery.trial_id,
        attempt=attempt,
        dispatch_event_id=dispatch.event_id,
        delivery_id=delivery.delivery_id,
        lambda_request_id=lambda_request_id,
    )
    outcome = caller.refund(_provider_request(delivery, attempt, dispatch))
    log.info("attempt ended", extra={"outcome": type(outcome).__name__, "elapsed_ms": outcome.elapsed_ms})
    return _record(caller, delivery, attempt, dispatch, outcome)


def _record(caller: Caller, delivery: Delivery, attempt: int, dispatch: Appended, outcome: Outcome) -> str:
    def outcome_event(type: str, knowledge: Item, **facts: Any) -> Appended:
        return caller.journal.append(
            delivery.trial_id,
            type,
            attempt=attempt,
            caused_by=dispatch.event_id,
            elapsed_ms=outcome.elapsed_ms,
            companions=[knowledge],
            **facts,
        )

    known = _request_state(caller, delivery, KNOWN_UNLESS_SET, knowledge="KNOWN")
    unknown = _request_state(caller, delivery, BECOMES_UNKNOWN, knowledge="UNKNOWN")
    match outcome:
        case Answered(transaction_id=transaction_id):
            answer = outcome_event("response_received", known, transaction_id=transaction_id)
            return _finish(caller, delivery, attempt, answer, SUCCEEDED)
        case Refused(code=code):
            # Definite: no money moved in this attempt, and a repeat would be refused again.
            refusal = outcome_event("attempt_failed", known, detail={"code": code})
            return _finish(caller, delivery, attempt, refusal, PROVIDER_REFUSED)
        case TimedOut(library_outcome=library):
            detail = {"deadline_ms": caller.deadline_ms, "library_outcome": library}
            outcome_event("caller_timeout_recorded", unknown, detail=detail)
            raise AttemptTimedOut(f"no answer in {outcome.elapsed_ms} ms, deadline {caller.deadline_ms} ms")
        case Unknown(reason=reason, library_outcome=library):
            detail = {"reason": str(reason), "library_outcome": library}
            outcome_event("outcome_unknown", unknown, detail=detail)
            raise OutcomeUnknown(f"{reason}: {library}")


def _finish(caller: Caller, delivery: Delivery, attempt: int, cause: Appended, reason: str) -> str:
    caller.journal.append(
        delivery.trial_id,
        "request_finished",
        attempt=attempt,
        caused_by=cause.event_id,
        companions=[_request_state(caller, delivery, FINISHED, status="FINISHED", reason=reason)],
    )
    return reason


def _provider_request(delivery: Delivery, attempt: int, dispatch: Appended) -> dict[str, Any]:
    request = delivery.request
    return {
        "trial_id": delivery.trial_id,
        "refund_request_id": request.refund_request_id,
        "payment_id": request.payment_id,
        "amount_minor": request.approved_minor,
        "currency": request.currency,
        "dispatch_event_id": dispatch.event_id,
        "attempt": attempt,
        "delivery_id": delivery.delivery_id,
    }


def _request_state(caller: Caller, delivery: Delivery, clause: str, **values: str) -> Item:
    """A change of the request's state, to be committed with the event that justifies it."""
    names = {f"#{name}": name for name in ("status", "reason") if f"#{name}" in clause}  # reserved words
    return {
        "Update": {
            "TableName": caller.journal.table,
            "Key": {"trial_id": {"S": delivery.trial_id}, "entry": {"S": REQUEST}},
            "UpdateExpression": clause,
            "ExpressionAttributeValues": {f":{name}": {"S": value} for name, value in values.items()},
            **({"ExpressionAttributeNames": names} if names else {}),
        }
    }
