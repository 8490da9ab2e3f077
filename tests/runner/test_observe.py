"""A trial is over only when nothing can move: queues, provider calls, executions, ledger."""

import pytest

from runner import protocol
from runner.trials import observe
from runner.trials.observe import Observation, plain_item
from runner.trials.trial import Trial

P = protocol.load("study-1-rehearsal")


class Clock:
    def __init__(self):
        self.now_s = 1000.0

    def monotonic(self):
        return self.now_s

    def now_ms(self):
        return int(self.now_s * 1000)


def observation(variant="conventional", *, events=(), request=None, at_rest=P.quiescence.samples, clock=None):
    """An observation that has already seen these events; the AWS side is not touched."""
    clock = clock or Clock()
    trial = Trial("t", "r", "trial", "COMMIT_THEN_TIMEOUT", variant)
    seen = Observation(None, P, clock, trial)
    seen._events = {event["seq"]: event for event in events}
    seen._seen_at = {event["seq"]: clock.monotonic() for event in events}
    seen._request = request or {}
    seen._at_rest = at_rest
    return seen


def event(seq, type, **more):
    return {"seq": seq, "type": type, "event_id": f"e{seq}", "at_ms": 1_000_000, **more}


FINISHED = {"status": "FINISHED", "reason": "SUCCEEDED"}
CALL = (
    event(1, "dispatch_started"),
    event(2, "provider_commit_confirmed", caused_by="e1", transaction_id="tx1"),
)
ANSWERED = (*CALL, event(3, "response_sent", transaction_id="tx1"))


@pytest.fixture(autouse=True)
def settled_aws(monkeypatch):
    monkeypatch.setattr(Observation, "_executions_terminal", lambda _self: True)
    monkeypatch.setattr(Observation, "_ledger_at_rest", lambda _self: True)


def test_a_finished_answered_and_settled_trial_is_quiescent():
    assert observation(events=ANSWERED, request=FINISHED).quiescent()


def test_d12_a_single_zero_sample_is_not_rest():
    assert not observation(events=ANSWERED, request=FINISHED, at_rest=1).quiescent()


def test_an_unfinished_request_is_not_quiescent_however_still_the_queues_are():
    assert not observation(events=ANSWERED).quiescent()


def test_a_provider_that_has_not_answered_can_still_commit():
    clock = Clock()
    seen = observation(events=CALL, request=FINISHED, clock=clock)
    assert not seen.quiescent()
    # ... until its function timeout must have ended it.
    clock.now_s += P.caller.deadline_ms / 1000 + P.provider.function_timeout_s
    assert seen.quiescent()


def test_a_dispatch_that_no_provider_has_seen_yet_can_still_commit():
    assert not observation(events=CALL[:1], request=FINISHED).quiescent()


def test_a_dead_lettered_request_is_over():
    seen = observation(events=ANSWERED)
    seen._dead_lettered = 1
    assert seen.quiescent()


def test_d09_an_unknown_execution_status_is_not_terminal():
    assert {"RUNNING", "PAUSED", "PAUSING", "DELETING"}.isdisjoint(observe.TERMINAL_STATUSES)


def test_the_wait_names_the_mechanism_that_owns_the_retry():
    timed_out = (
        event(1, "delivery_received"),
        event(2, "dispatch_started"),
        event(3, "caller_timeout_recorded"),
    )
    assert observation(events=timed_out).waiting_for() == "SQS redelivery in 8 s"
    assert observation("durable", events=timed_out).waiting_for() == "durable step retry in 4 s"


def test_plain_items_keep_integers_as_integers():
    assert plain_item({"a": {"N": "10000"}, "b": {"M": {"c": {"S": "x"}}}}) == {"a": 10000, "b": {"c": "x"}}
