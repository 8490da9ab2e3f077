"""What trials take for granted of a function, invoked, timed out, or durable."""

import json
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ReadTimeoutError

from runner.doctor.behaviours import Behaviour, Ground, Probe, Told
from runner.doctor.ground_stack import FUNCTION_TIMEOUT_S, MAX_RECEIVES
from runner.names import DURABLE_ALIAS
from runner.trials.collect import TERMINAL_STATUSES

CLIENT_TIMEOUT_S = 1
STEP_DELAY_S = 1
HISTORY = [
    "ExecutionStarted",
    "StepStarted",
    "StepFailed",
    "InvocationCompleted",
    "StepStarted",
    "StepSucceeded",
    "InvocationCompleted",
    "ExecutionSucceeded",
]


def _invoke(ground: Ground, event: dict[str, Any], **client: Any) -> dict[str, Any]:
    return ground.client("lambda", **client).invoke(
        FunctionName=ground.outputs["Sleeper"], Payload=json.dumps(event).encode()
    )


def _outlives(ground: Ground) -> Iterator[Told]:
    """The client gives up in the middle of the call; the function must not."""
    _invoke(ground, {})
    trial = ground.fresh()
    try:
        _invoke(ground, {"trial": trial, "sleep_s": 2}, read_timeout_s=CLIENT_TIMEOUT_S)
        gave_up = False
    except ReadTimeoutError:
        gave_up = True
    ground.until(lambda: "ended" in ground.marks(trial), limit_s=20)
    marks = ground.marks(trial)
    yield Told(
        gave_up and marks == ["began", "ended"],
        f"the client {'gave up' if gave_up else 'got an answer'}, the function {' and '.join(marks)}",
    )


def _timeout(ground: Ground) -> Iterator[Told]:
    """A function that wants more time than it has."""
    trial, too_long_s = ground.fresh(), FUNCTION_TIMEOUT_S * 2
    answer = _invoke(ground, {"trial": trial, "sleep_s": too_long_s})
    message = json.load(answer["Payload"])
    told = str(message.get("errorMessage", message)) if isinstance(message, dict) else str(message)
    # As long as it would have slept on, had it not been ended.
    ground.clock.sleep(too_long_s - FUNCTION_TIMEOUT_S + 1)
    marks = ground.marks(trial)
    yield Told(
        answer.get("FunctionError") == "Unhandled" and "timed out" in told and marks == ["began"],
        f"{answer.get('FunctionError')}: {told}; {' and '.join(marks)}",
    )


def _send(ground: Ground, *, fail: bool) -> str:
    group = ground.fresh()
    return ground.client("sqs").send_message(
        QueueUrl=ground.outputs["DurableQueue"],
        MessageBody=json.dumps({"fail": fail}),
        MessageGroupId=group,
        MessageDeduplicationId=group,
    )["MessageId"]


def _executions(ground: Ground, message_id: str) -> list[dict[str, Any]]:
    """Return the executions that a message started, in the order of its receives."""
    client, found = ground.client("lambda"), []
    marker: dict[str, str] = {}
    while True:
        page = client.list_durable_executions_by_function(FunctionName=ground.outputs["Durable"], **marker)
        for listed in page["DurableExecutions"]:
            execution = client.get_durable_execution(DurableExecutionArn=listed["DurableExecutionArn"])
            records = json.loads(execution.get("InputPayload", "{}")).get("Records", [{}])
            if records[0].get("messageId") == message_id:
                count = int(records[0]["attributes"]["ApproximateReceiveCount"])
                found.append({**execution, "receive_count": count})
        if not page.get("NextMarker"):
            return sorted(found, key=lambda execution: execution["receive_count"])
        marker = {"Marker": page["NextMarker"]}


def _retry(ground: Ground) -> Iterator[Told]:
    """One delivery, one step that fails once, and the history of it."""
    message_id = _send(ground, fail=False)

    def ended() -> list[dict[str, Any]]:
        return [e for e in _executions(ground, message_id) if e["Status"] in TERMINAL_STATUSES]

    (execution, *_) = ground.until(ended, pause_s=0.5)
    events = [
        event
        for page in ground.client("lambda")
        .get_paginator("get_durable_execution_history")
        .paginate(DurableExecutionArn=execution["DurableExecutionArn"], IncludeExecutionData=True)
        for event in page["Events"]
    ]
    types = [event["EventType"] for event in events]
    failed = next(e for e in events if e["EventType"] == "StepFailed")
    again = next(
        e for e in events if e["EventType"] == "StepStarted" and events.index(e) > events.index(failed)
    )
    details = failed.get("StepFailedDetails", {}).get("RetryDetails", {})
    waited_s = (again["EventTimestamp"] - failed["EventTimestamp"]).total_seconds()
    planned = details.get("NextAttemptDelaySeconds")
    yield Told(
        planned == STEP_DELAY_S and waited_s >= STEP_DELAY_S,
        f"{planned} s planned, {waited_s:.2f} s waited",
    )
    yield Told(types == HISTORY, ", ".join(types))


def _deliveries(ground: Ground) -> Iterator[Told]:
    """A message whose executions all fail: delivered until its queue gives up."""
    message_id = _send(ground, fail=True)
    count = "ApproximateNumberOfMessages"

    def dead() -> bool:
        attributes = ground.client("sqs").get_queue_attributes(
            QueueUrl=ground.outputs["DurableDlq"], AttributeNames=[count]
        )
        return int(attributes["Attributes"][count]) > 0

    lettered = ground.until(dead, pause_s=0.5)
    found = [(e["receive_count"], e["Status"]) for e in _executions(ground, message_id)]
    yield Told(
        bool(lettered) and found == [(n, "FAILED") for n in range(1, MAX_RECEIVES + 1)],
        "executions at receive " + ", ".join(f"{n} {status}" for n, status in found),
    )


def _alias(ground: Ground) -> Iterator[Told]:
    """An invoke by alias runs, and names the version that the alias points to."""
    answer = ground.client("lambda").invoke(
        FunctionName=ground.outputs["Durable"], Qualifier=DURABLE_ALIAS, Payload=b"{}"
    )
    version, arn = answer.get("ExecutedVersion"), answer.get("DurableExecutionArn")
    yield Told(
        version == "1" and bool(arn) and json.load(answer["Payload"]) == {"pong": True},
        f"version {version}, {'an' if arn else 'no'} execution",
    )


PROBES = (
    Probe(
        (Behaviour("invoke_outlives_client", "a function runs to its end after its client gave up, once"),),
        _outlives,
    ),
    Probe((Behaviour("function_timeout", "Unhandled, timed out, and no work afterwards"),), _timeout),
)
DURABLE_PROBES = (
    Probe(
        (Behaviour("durable_invoke_by_alias", "starts an execution of the version behind the alias"),),
        _alias,
    ),
    Probe(
        (
            Behaviour("durable_retry_delay", f"{STEP_DELAY_S} s in the history, and at least that long"),
            Behaviour("durable_history_shape", ", ".join(HISTORY)),
        ),
        _retry,
    ),
)
DELIVERY_PROBES = (
    Probe(
        (
            Behaviour(
                "one_execution_per_delivery",
                "each receive starts its own execution; then the dead-letter queue",
            ),
        ),
        _deliveries,
    ),
)
