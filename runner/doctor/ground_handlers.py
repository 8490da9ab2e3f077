"""What runs in the throw-away functions. Its text is the code of all three; under 4096 characters."""

import functools
import json
import os
import time

import boto3
from aws_durable_execution_sdk_python import durable_execution
from aws_durable_execution_sdk_python.config import Duration, StepConfig
from aws_durable_execution_sdk_python.retries import RetryDecision
from botocore.config import Config


@functools.cache
def dynamodb():
    """One client, made in the first call. A mark is no idempotent write: one request each."""
    once = {"mode": "standard", "total_max_attempts": 1}
    return boto3.client("dynamodb", config=Config(connect_timeout=2, read_timeout=2, retries=once))


def mark(trial: str, text: str) -> None:
    """Append a text to the list in one item: what ran, in which order, how often."""
    dynamodb().update_item(
        TableName=os.environ["TABLE"],
        Key={"trial_id": {"S": trial}, "entry": {"S": "MARKS"}},
        UpdateExpression="SET marks = list_append(if_not_exists(marks, :none), :one)",
        ExpressionAttributeValues={":none": {"L": []}, ":one": {"L": [{"S": text}]}},
    )


def sleeper(event, context):
    """Mark the begin, sleep, mark the end."""
    if "trial" not in event:
        return {"pong": bool(dynamodb())}
    mark(event["trial"], "began")
    time.sleep(event["sleep_s"])
    mark(event["trial"], "ended")
    return {"slept_s": event["sleep_s"]}


def follower(event, context):
    """Mark every stream record that the mapping's filter lets through."""
    for record in event.get("Records", []):
        image = record["dynamodb"]["NewImage"]
        mark(image["reports_to"]["S"], image["entry"]["S"])


def retry(error, attempts):
    """Two attempts, a second apart."""
    return RetryDecision.retry(Duration.from_seconds(1)) if attempts < 2 else RetryDecision.no_retry()


@durable_execution
def durable(event, context):
    """One step that fails on its first attempt, and on all of them if the message says so."""
    if "Records" not in event:
        return {"pong": True}
    record = event["Records"][0]
    body = json.loads(record["body"])

    def attempt(step):
        if step.attempt == 1 or body["fail"]:
            raise RuntimeError("as asked")
        return record["attributes"]["ApproximateReceiveCount"]

    return context.step(attempt, name="attempt", config=StepConfig(retry_strategy=retry))
