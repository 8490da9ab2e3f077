"""Both callers: what they refuse before sending, and what each outcome leaves behind."""

import functools
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from aws_durable_execution_sdk_python import durable_execution
from aws_durable_execution_sdk_python.execution import InvocationStatus
from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestRunner

from lambdas.caller import conventional, durable
from lambdas.caller.attempt import AttemptTimedOut, OutcomeUnknown
from lambdas.caller.message import Delivery
from lambdas.shared.provider_client import Answered, Refused, TimedOut, Unknown, UnknownReason
from lambdas.shared.settings import StepSettings
from lambdas.shared.strict import Malformed
from tests.lambdas.lab import REQUEST, TRIAL, sqs_event

CONTEXT = SimpleNamespace(aws_request_id="lambda-1")
TIMED_OUT = TimedOut("pending", 3001)
UNKNOWN = Unknown(UnknownReason.FUNCTION_ERROR, "function_error:Unhandled", 15)


def body(text):
    event = sqs_event()
    event["Records"][0]["body"] = text
    return event


BAD_EVENTS = {
    "no records": {},
    "none at all": {"Records": []},
    "two records": {"Records": sqs_event()["Records"] * 2},
    "not JSON": body("refund please"),
    "not an object": body("[]"),
    "d24 amount as float": body(
        json.dumps({"trial_id": TRIAL, "request": REQUEST}).replace("10000", "100.00")
    ),
    "d24 amount as text": sqs_event(request=REQUEST | {"approved_minor": "10000"}),
    "d24 amount as true": sqs_event(request=REQUEST | {"approved_minor": True}),
    "d24 not a number": body(json.dumps({"trial_id": TRIAL, "request": REQUEST}).replace("10000", "NaN")),
    "amount zero": sqs_event(request=REQUEST | {"approved_minor": 0}),
    "amount negative": sqs_event(request=REQUEST | {"approved_minor": -1}),
    "approved above captured": sqs_event(request=REQUEST | {"approved_minor": 10001}),
    "currency in small letters": sqs_event(request=REQUEST | {"currency": "brl"}),
    "no payment": sqs_event(request={k: v for k, v in REQUEST.items() if k != "payment_id"}),
    "empty request id": sqs_event(request=REQUEST | {"refund_request_id": ""}),
    "a lone surrogate": sqs_event(request=REQUEST | {"payment_id": "\ud800"}),
    "unknown key in the request": sqs_event(request=REQUEST | {"note": "x"}),
    "unknown key in the message": sqs_event(scenario="CONTROL"),
    "repeated key": body(json.dumps({"trial_id": TRIAL, "request": REQUEST})[:-1] + ', "trial_id": "other"}'),
    "very deep": body("[" * 100_000),
}


@pytest.fixture
def outcomes(lab):
    """A caller whose provider gives these outcomes in turn; `dispatched` is what was sent."""
    lab.dispatched = []

    def answer_with(*outcomes):
        left = iter(outcomes)

        def refund(request):
            lab.dispatched.append(request)
            return next(left)

        return replace(lab.caller, refund=refund)

    return answer_with


@pytest.fixture
def deliver(lab, outcomes, monkeypatch):
    """One delivery to the conventional handler, whose provider gives this outcome."""
    monkeypatch.setenv("SUC_JOURNAL_TABLE", "journal")
    monkeypatch.setenv("SUC_PROVIDER_FUNCTION", "provider")
    monkeypatch.setenv("SUC_DEADLINE_MS", "3000")

    def deliver(outcome, event=None):
        monkeypatch.setattr(conventional, "open_caller", lambda _: (outcomes(outcome), {}))
        return conventional.handler(sqs_event() if event is None else event, CONTEXT)

    return deliver


@pytest.mark.parametrize("event", BAD_EVENTS.values(), ids=BAD_EVENTS)
def test_d24_a_bad_message_is_refused_before_anything_is_sent(lab, deliver, event):
    with pytest.raises(Malformed, match="expected"):
        deliver(Answered("tx", 5), event)
    assert lab.dispatched == []
    assert lab.events() == []


def test_the_provider_is_told_what_it_needs_and_never_the_scenario(lab, deliver):
    deliver(Answered("tx-1", 12))
    dispatch = lab.events()[1]
    assert lab.dispatched == [
        {
            "trial_id": TRIAL,
            "refund_request_id": "ref-poc-001",
            "payment_id": "pay-poc-001",
            "amount_minor": 10000,
            "currency": "BRL",
            "dispatch_event_id": dispatch["event_id"],
            "attempt": 1,
            "delivery_id": "message-1",
        }
    ]


def test_an_answer_finishes_the_request(lab, deliver):
    assert deliver(Answered("tx-1", 12)) == {"trial_id": TRIAL, "reason": "SUCCEEDED"}
    received, dispatch, response, finished = lab.events()
    assert (received["delivery_id"], received["receive_count"]) == ("message-1", 1)
    assert received["lambda_request_id"] == dispatch["lambda_request_id"] == "lambda-1"
    assert dispatch["caused_by"] == received["event_id"]
    assert response["caused_by"] == dispatch["event_id"]
    assert (response["transaction_id"], response["elapsed_ms"]) == ("tx-1", 12)
    assert (finished["type"], finished["caused_by"]) == ("request_finished", response["event_id"])


def test_d01_a_timeout_leaves_the_effect_unknown_and_raises_for_the_redelivery(lab, deliver):
    with pytest.raises(AttemptTimedOut, match="deadline 3000 ms"):
        deliver(TIMED_OUT)
    event = lab.events()[-1]
    assert (event["type"], event["elapsed_ms"]) == ("caller_timeout_recorded", 3001)
    assert event["detail"] == {"deadline_ms": 3000, "library_outcome": "pending"}
    state = lab.entry("REQUEST")
    assert (state["status"], state["effect_knowledge"]) == ("IN_PROGRESS", "UNKNOWN")
    assert "reason" not in state


def test_d01_an_unknown_outcome_is_not_a_failure(lab, deliver):
    with pytest.raises(OutcomeUnknown, match="FUNCTION_ERROR"):
        deliver(UNKNOWN)
    event = lab.events()[-1]
    assert (event["type"], event["elapsed_ms"]) == ("outcome_unknown", 15)
    assert event["detail"] == {"reason": "FUNCTION_ERROR", "library_outcome": "function_error:Unhandled"}
    assert lab.entry("REQUEST")["effect_knowledge"] == "UNKNOWN"


def test_d01_a_definite_refusal_finishes_the_request_and_is_not_repeated(lab, deliver):
    assert deliver(Refused("INVALID_REQUEST", 9)) == {"trial_id": TRIAL, "reason": "PROVIDER_REFUSED"}
    failed, finished = lab.events()[-2:]
    assert (failed["type"], failed["detail"]) == ("attempt_failed", {"code": "INVALID_REQUEST"})
    assert finished["caused_by"] == failed["event_id"]
    state = lab.entry("REQUEST")
    assert (state["status"], state["reason"]) == ("FINISHED", "PROVIDER_REFUSED")


@pytest.mark.parametrize("first", [TIMED_OUT, UNKNOWN], ids=["timeout", "unknown"])
def test_d01_unknown_is_never_left_whatever_comes_later(lab, deliver, first):
    with pytest.raises((AttemptTimedOut, OutcomeUnknown)):
        deliver(first)
    deliver(Answered("tx-2", 10), sqs_event(2))
    state = lab.entry("REQUEST")
    assert (state["status"], state["effect_knowledge"]) == ("FINISHED", "UNKNOWN")


def test_knowledge_degrades_when_a_finished_request_is_delivered_again(lab, deliver):
    deliver(Answered("tx-1", 10))
    assert lab.entry("REQUEST")["effect_knowledge"] == "KNOWN"
    with pytest.raises(AttemptTimedOut):
        deliver(TIMED_OUT, sqs_event(2))
    state = lab.entry("REQUEST")
    assert (state["status"], state["effect_knowledge"]) == ("IN_PROGRESS", "UNKNOWN")
    assert "reason" not in state


def test_d08_attempts_are_told_apart_by_their_dispatch_event_even_under_one_number(lab, deliver):
    for _ in range(2):
        with pytest.raises(AttemptTimedOut):
            deliver(TIMED_OUT, sqs_event(1))
    dispatches = [event for event in lab.events() if event["type"] == "dispatch_started"]
    assert [event["attempt"] for event in dispatches] == [1, 1]
    assert len({event["event_id"] for event in dispatches}) == 2


def test_a_killed_function_leaves_an_intent_without_an_outcome(lab, deliver):
    class Killed(BaseException):
        pass

    def kill(_):
        raise Killed

    with pytest.raises(Killed):
        durable.run_attempt(replace(lab.caller, refund=kill), Delivery.parse(sqs_event()), 1, "lambda-1")
    assert lab.types() == ["delivery_received", "dispatch_started"]
    assert "effect_knowledge" not in lab.entry("REQUEST")


# --- durable ---

STEP = StepSettings("refund-attempt", 2, 60)


def execute(caller, event=None, step=STEP, clients=None):
    """Run the durable caller to its end; the retry delay passes on a virtual clock."""
    function = durable_execution(functools.partial(durable.run, caller, step, clients or {}))
    with DurableFunctionTestRunner(function, poll_interval=0.02) as runner:
        arn = runner.run_async(input=json.dumps(event or sqs_event()))
        result = runner.wait_for_result(arn, timeout=30)
        history = runner.get_execution_history(arn, include_execution_data=True)
    return result, history.events


def names(events):
    return [event.event_type for event in events if event.event_type.startswith("Step")]


def test_durable_timeout_then_answer_is_one_failed_and_one_succeeded_step(lab, outcomes):
    result, events = execute(outcomes(TIMED_OUT, Answered("tx-2", 11)))
    assert result.status is InvocationStatus.SUCCEEDED
    assert json.loads(result.result) == {"trial_id": TRIAL, "reason": "SUCCEEDED"}
    assert names(events) == ["StepStarted", "StepFailed", "StepStarted", "StepSucceeded"]
    steps = [event for event in events if event.event_type.startswith("Step")]
    assert {step.name for step in steps} == {"refund-attempt"}
    assert steps[1].step_failed_details.retry_details.next_attempt_delay_seconds == 60
    assert steps[1].step_failed_details.error.payload.type.endswith("AttemptTimedOut")
    # A plain string: the history shows it as it is.
    assert steps[3].step_succeeded_details.result.payload == '"SUCCEEDED"'
    assert lab.types() == [
        "delivery_received",
        "dispatch_started",
        "caller_timeout_recorded",
        "delivery_received",
        "dispatch_started",
        "response_received",
        "request_finished",
    ]
    dispatches = [event for event in lab.events() if event["type"] == "dispatch_started"]
    assert [event["attempt"] for event in dispatches] == [1, 2]
    assert lab.entry("REQUEST")["effect_knowledge"] == "UNKNOWN"


def test_durable_answer_at_once_is_one_step_and_nothing_written_by_replays(lab, outcomes):
    result, events = execute(outcomes(Answered("tx-1", 11)))
    assert result.status is InvocationStatus.SUCCEEDED
    assert names(events) == ["StepStarted", "StepSucceeded"]
    assert lab.types() == ["delivery_received", "dispatch_started", "response_received", "request_finished"]


def test_durable_gives_up_after_exactly_its_attempts_and_the_message_returns(lab, outcomes):
    result, events = execute(outcomes(TIMED_OUT, UNKNOWN))
    assert result.status is InvocationStatus.FAILED
    assert result.error.type.endswith("StepError")
    assert names(events) == ["StepStarted", "StepFailed", "StepStarted", "StepFailed"]
    assert len(lab.dispatched) == 2
    assert lab.entry("REQUEST")["status"] == "IN_PROGRESS"


def test_durable_does_not_repeat_a_definite_refusal(lab, outcomes):
    result, _ = execute(outcomes(Refused("INVALID_REQUEST", 9)))
    assert json.loads(result.result)["reason"] == "PROVIDER_REFUSED"
    assert len(lab.dispatched) == 1


def test_durable_refuses_a_bad_message_before_the_step(lab, outcomes):
    result, events = execute(outcomes(Answered("tx", 1)), event=BAD_EVENTS["approved above captured"])
    assert result.status is InvocationStatus.FAILED
    assert "approved_minor: expected at most the captured 10000, found 10001" in result.error.message
    assert names(events) == []
    assert lab.dispatched == []


def test_durable_ping_is_the_durable_input(lab, outcomes):
    result, events = execute(outcomes(), event={"ping": True}, clients={"dynamodb": lab.client})
    pong = json.loads(result.result)
    assert (pong["pong"], pong["durable_sdk"]) == (True, "3.0.0")
    assert pong["sdk_config"]["dynamodb"]["retries"]["mode"] == "standard"
    assert names(events) == []
