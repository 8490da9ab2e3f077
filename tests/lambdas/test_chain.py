"""The causal chain across all handlers, in one process."""

from dataclasses import replace

import pytest

from lambdas.caller.attempt import AttemptTimedOut, run_attempt
from lambdas.caller.message import Delivery
from lambdas.release.controller import Decision
from tests.lambdas.lab import LEDGER, TRIAL, sqs_event


def attempt(lab, number=1):
    delivery = Delivery.parse(sqs_event(number))
    return run_attempt(lab.caller, delivery, number, f"lambda-{number}")


def test_control_is_one_effect_and_a_known_finished_request(lab):
    assert attempt(lab) == "SUCCEEDED"

    assert lab.types() == [
        "delivery_received",
        "dispatch_started",
        "provider_request_received",
        "provider_commit_confirmed",
        "response_sent",
        "response_received",
        "request_finished",
    ]
    assert [event["seq"] for event in lab.events()] == [1, 2, 3, 4, 5, 6, 7]
    assert lab.entry("COUNTER")["n"] == 7
    assert lab.entry("REQUEST") == {
        "trial_id": TRIAL,
        "entry": "REQUEST",
        "refund_request_id": "ref-poc-001",
        "status": "FINISHED",
        "reason": "SUCCEEDED",
        "effect_knowledge": "KNOWN",
    }
    (row,) = lab.rows(LEDGER)
    commit = lab.events()[3]
    assert (row["amount_minor"], row["currency"], row["status"]) == (10000, "BRL", "SUCCEEDED")
    assert (row["seq"], row["transaction_id"]) == (commit["seq"], commit["transaction_id"])
    assert commit["detail"] == {"barrier": "NONE"}
    assert lab.barrier_item() is None


def test_treatment_commits_times_out_releases_and_the_retry_commits_again(lab):
    lab.arm()
    with pytest.raises(AttemptTimedOut):
        attempt(lab, 1)
    assert lab.barrier_item()["state"] == "HELD"
    assert lab.deliver_timeouts() == [Decision.RELEASE]
    lab.resume()
    assert attempt(lab, 2) == "SUCCEEDED"

    assert lab.types() == [
        "barrier_armed",
        "delivery_received",
        "dispatch_started",
        "provider_request_received",
        "provider_commit_confirmed",
        "caller_timeout_recorded",
        "release_signalled",
        "response_released",
        "delivery_received",
        "dispatch_started",
        "provider_request_received",
        "provider_commit_confirmed",
        "response_sent",
        "response_received",
        "request_finished",
    ]
    events = {event["seq"]: event for event in lab.events()}
    assert sorted(events) == list(range(1, 16))
    assert events[5]["caused_by"] == events[3]["event_id"]
    assert events[5]["detail"] == {"barrier": "HELD"}
    assert events[6]["caused_by"] == events[3]["event_id"]
    assert events[6]["detail"] == {"deadline_ms": 3000, "library_outcome": "pending"}
    assert events[7]["caused_by"] == events[6]["event_id"]
    assert events[8]["caused_by"] == events[7]["event_id"]
    assert events[12]["detail"] == {"barrier": "SPENT"}
    assert [row["seq"] for row in sorted(lab.rows(LEDGER), key=lambda row: row["seq"])] == [5, 12]
    barrier = lab.barrier_item()
    assert (barrier["state"], barrier["held_attempt"]) == ("RELEASED", 1)
    assert barrier["held_dispatch_event_id"] == events[3]["event_id"]
    assert barrier["held_event_id"] == events[5]["event_id"]
    assert barrier["released_by_event_id"] == events[6]["event_id"]
    assert barrier["release_event_id"] == events[7]["event_id"]
    # UNKNOWN is never left: the second success proves only the second effect.
    assert lab.entry("REQUEST")["effect_knowledge"] == "UNKNOWN"
    assert lab.entry("REQUEST")["reason"] == "SUCCEEDED"


@pytest.mark.parametrize("shift_ms", [-10_000, 0, 10_000])
def test_d31_a_clock_that_is_wrong_changes_no_order_and_no_duration(lab, shift_ms):
    wrong = lab.journal("provider", now_ms=lambda: 1_000_000 + shift_ms)
    lab.provider = replace(lab.provider, journal=wrong, now_ms=lambda: 1_000_000 + shift_ms)
    lab.arm()
    with pytest.raises(AttemptTimedOut):
        attempt(lab)
    lab.deliver_timeouts()
    lab.resume(3_200)
    assert lab.types()[4:] == [
        "provider_commit_confirmed",
        "caller_timeout_recorded",
        "release_signalled",
        "response_released",
    ]
    assert [event["elapsed_ms"] for event in lab.events() if "elapsed_ms" in event] == [3007, 3200]
    assert lab.events()[4]["at_ms"] == 1_000_000 + shift_ms
