"""Receiving, committing and answering one refund request.

    received -> commit (ledger, event, barrier: one transaction) -> answer at once         NONE or SPENT
                                                                '-> wait for the release   HELD

No idempotency key, no deduplication, no cap: each request that arrives moves money. That is the
provider of this study, not an omission.
"""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.provider.ledger import ledger_put
from lambdas.provider.request import Envelope, Refund
from lambdas.shared.barrier import ARMED, RELEASED, BarrierTable
from lambdas.shared.journal import Appended, CompanionConflict, Journal
from lambdas.shared.logs import bound_logger
from lambdas.shared.strict import Malformed

BARRIER_NONE, BARRIER_HELD, BARRIER_SPENT = "NONE", "HELD", "SPENT"
INVALID_REQUEST = "INVALID_REQUEST"


@dataclass(frozen=True)
class Provider:
    """What the provider works with; clocks and ids can be replaced."""

    journal: Journal
    barrier: BarrierTable
    ledger_table: str
    hold_budget_s: int
    barrier_poll_ms: int
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    sleep: Callable[[float], None] = time.sleep
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex


@dataclass(frozen=True)
class Commit:
    """A refund that is in the ledger."""

    transaction_id: str
    event: Appended
    barrier: str


def serve(provider: Provider, event: Mapping[str, Any], request_id: str) -> dict[str, Any]:
    """Serve one request: refuse it for a named reason, or commit it and answer."""
    try:
        envelope = Envelope.parse(event)
    except Malformed as error:  # it names no trial, so there is no journal to write to
        bound_logger(lambda_request_id=request_id).warning("request refused", extra={"reason": str(error)})
        return _refusal(error)
    log = bound_logger(
        trial_id=envelope.trial_id,
        attempt=envelope.attempt,
        dispatch_event_id=envelope.dispatch_event_id,
        delivery_id=envelope.delivery_id,
        lambda_request_id=request_id,
    )
    provider.journal.append(
        envelope.trial_id,
        "provider_request_received",
        attempt=envelope.attempt,
        delivery_id=envelope.delivery_id,
        lambda_request_id=request_id,
        caused_by=envelope.dispatch_event_id,
    )
    try:
        refund = Refund.parse(event)
    except Malformed as error:
        log.warning("request refused", extra={"reason": str(error)})
        return _refusal(error)
    commit = _commit(provider, envelope, refund, request_id)
    log.info("refund committed", extra={"transaction_id": commit.transaction_id, "barrier": commit.barrier})
    if commit.barrier == BARRIER_HELD:
        _hold(provider, envelope, commit)
    else:
        _record_answer(provider, envelope, commit, "response_sent", commit.event.event_id)
    return {
        "status": "COMMITTED",
        "transaction_id": commit.transaction_id,
        "refund_request_id": refund.refund_request_id,
        "amount_minor": refund.amount_minor,
        "currency": refund.currency,
    }


def _commit(provider: Provider, envelope: Envelope, refund: Refund, request_id: str) -> Commit:
    transaction_id = provider.new_id()
    row = ledger_put(provider.ledger_table, envelope, refund, transaction_id, request_id, provider.now_ms())

    def commit(barrier: str, *companions: Any) -> Commit:
        event = provider.journal.append(
            envelope.trial_id,
            "provider_commit_confirmed",
            attempt=envelope.attempt,
            lambda_request_id=request_id,
            transaction_id=transaction_id,
            caused_by=envelope.dispatch_event_id,
            detail={"barrier": barrier},
            companions=[row, *companions],
        )
        return Commit(transaction_id, event, barrier)

    standing = provider.barrier.read(envelope.trial_id)
    if standing is None:
        return commit(BARRIER_NONE)
    if standing.state == ARMED:
        hold = provider.barrier.hold(envelope.trial_id, envelope.attempt, envelope.dispatch_event_id)
        try:
            return commit(BARRIER_HELD, hold)
        except CompanionConflict as conflict:
            if conflict.table != provider.barrier.table:
                raise
            # Another call of this trial was held between our read and our write: the barrier fires once.
    return commit(BARRIER_SPENT)


def _hold(provider: Provider, envelope: Envelope, commit: Commit) -> None:
    """Keep the answer back until the caller's timeout was seen and released it, or the budget is over."""
    started_ns = provider.monotonic_ns()
    budget_ns = provider.hold_budget_s * 1_000_000_000
    while True:
        held_ms = (provider.monotonic_ns() - started_ns) // 1_000_000
        standing = provider.barrier.read(envelope.trial_id)
        if standing is not None and standing.state == RELEASED:
            _record_answer(
                provider, envelope, commit, "response_released", standing.release_event_id, held_ms
            )
            return
        if provider.monotonic_ns() - started_ns >= budget_ns and _expire(provider, envelope, commit, held_ms):
            return
        provider.sleep(provider.barrier_poll_ms / 1000)


def _expire(provider: Provider, envelope: Envelope, commit: Commit, held_ms: int) -> bool:
    """Give up the hold. False when the release won the race: the next read will see it."""
    try:
        provider.journal.append(
            envelope.trial_id,
            "barrier_expired",
            attempt=envelope.attempt,
            transaction_id=commit.transaction_id,
            caused_by=commit.event.event_id,
            elapsed_ms=held_ms,
            companions=[provider.barrier.expire(envelope.trial_id, envelope.dispatch_event_id)],
        )
    except CompanionConflict:
        return False
    return True


def _record_answer(
    provider: Provider, envelope: Envelope, commit: Commit, type: str, cause: str, held_ms: int | None = None
) -> None:
    provider.journal.append(
        envelope.trial_id,
        type,
        attempt=envelope.attempt,
        transaction_id=commit.transaction_id,
        caused_by=cause,
        elapsed_ms=held_ms,
    )


def _refusal(error: Malformed) -> dict[str, Any]:
    return {"status": "REFUSED", "code": INVALID_REQUEST, "message": str(error)}
