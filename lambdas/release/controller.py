"""Deciding on one recorded timeout: release the held answer, or refuse and say why.

The stream delivers at least once and retries on errors. So the decision starts from the barrier as it
is now, and a record that already released it changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from lambdas.shared.barrier import HELD, RELEASED, Barrier, BarrierTable
from lambdas.shared.journal import CompanionConflict, Journal
from lambdas.shared.logs import bound_logger

TIMEOUT_TYPE = "caller_timeout_recorded"


class Decision(StrEnum):
    RELEASE = "release"
    ALREADY_RELEASED = "already_released"  # by this very record: a redelivery
    BARRIER_ABSENT = "barrier_absent"
    NOT_HELD = "not_held"
    OTHER_DISPATCH = "other_dispatch"
    ELAPSED_BELOW_DEADLINE = "elapsed_below_deadline"
    NOT_FROM_CALLER = "not_from_caller"
    INCOMPLETE = "incomplete"  # it lacks the attempt, the dispatch event or the elapsed time


@dataclass(frozen=True)
class Timeout:
    """The caller_timeout_recorded event as the stream shows it."""

    trial_id: str
    event_id: str
    source: str | None
    attempt: int | None
    dispatch_event_id: str | None
    elapsed_ms: int | None

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> Self | None:
        """None for a record that is no inserted timeout: refusing it would feed the stream again."""
        image = record.get("dynamodb", {}).get("NewImage", {})
        if record.get("eventName") != "INSERT" or image.get("type") != {"S": TIMEOUT_TYPE}:
            return None
        numbers = {name: int(image[name]["N"]) for name in ("attempt", "elapsed_ms") if name in image}
        texts = {name: value["S"] for name, value in image.items() if "S" in value}
        return cls(
            trial_id=texts["trial_id"],
            event_id=texts["event_id"],
            source=texts.get("source"),
            attempt=numbers.get("attempt"),
            dispatch_event_id=texts.get("caused_by"),
            elapsed_ms=numbers.get("elapsed_ms"),
        )


@dataclass(frozen=True)
class Controller:
    """What the release controller works with."""

    journal: Journal
    barrier: BarrierTable
    deadline_ms: int


def decide(timeout: Timeout, barrier: Barrier | None, deadline_ms: int) -> Decision:
    """The record first, then the barrier: a release needs every one of these facts."""
    if timeout.source != "caller":
        return Decision.NOT_FROM_CALLER
    if None in (timeout.attempt, timeout.dispatch_event_id, timeout.elapsed_ms):
        return Decision.INCOMPLETE
    if timeout.elapsed_ms < deadline_ms:
        return Decision.ELAPSED_BELOW_DEADLINE
    if barrier is None:
        return Decision.BARRIER_ABSENT
    if barrier.state == RELEASED and barrier.released_by_event_id == timeout.event_id:
        return Decision.ALREADY_RELEASED
    if barrier.state != HELD:
        return Decision.NOT_HELD
    if barrier.held_dispatch_event_id != timeout.dispatch_event_id:
        return Decision.OTHER_DISPATCH
    return Decision.RELEASE


def on_record(controller: Controller, record: Mapping[str, Any], request_id: str) -> Decision | None:
    """Act on one stream record. AWS errors go out as they are: the mapping retries the record."""
    timeout = Timeout.parse(record)
    if timeout is None:
        bound_logger(lambda_request_id=request_id).warning("ignored a record that is no inserted timeout")
        return None
    log = bound_logger(
        trial_id=timeout.trial_id,
        attempt=timeout.attempt,
        dispatch_event_id=timeout.dispatch_event_id,
        timeout_event_id=timeout.event_id,
        lambda_request_id=request_id,
    )
    decision = decide(timeout, controller.barrier.read(timeout.trial_id), controller.deadline_ms)
    if decision is Decision.RELEASE:
        try:
            _signal(controller, timeout, request_id)
        except CompanionConflict:
            # The barrier moved since we read it. Nothing leads back to HELD, so this second look is final.
            decision = decide(timeout, controller.barrier.read(timeout.trial_id), controller.deadline_ms)
    log.info("timeout judged", extra={"decision": str(decision)})
    if decision not in (Decision.RELEASE, Decision.ALREADY_RELEASED):
        _refuse(controller, timeout, request_id, decision)
    return decision


def _signal(controller: Controller, timeout: Timeout, request_id: str) -> None:
    release = controller.barrier.release(timeout.trial_id, timeout.dispatch_event_id, timeout.event_id)
    controller.journal.append(
        timeout.trial_id,
        "release_signalled",
        attempt=timeout.attempt,
        lambda_request_id=request_id,
        caused_by=timeout.event_id,
        companions=[release],
    )


def _refuse(controller: Controller, timeout: Timeout, request_id: str, reason: Decision) -> None:
    controller.journal.append(
        timeout.trial_id,
        "release_refused",
        attempt=timeout.attempt,
        lambda_request_id=request_id,
        caused_by=timeout.event_id,
        detail={"reason": str(reason)},
    )
