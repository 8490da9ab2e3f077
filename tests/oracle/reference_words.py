"""Words and small questions of the reference judge: what FORMAT.md names, and how a value is looked at."""

from __future__ import annotations

import json
import re

CONSISTENT_QUERY = {
    "TableName",
    "KeyConditionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
    "ConsistentRead",
    "ExclusiveStartKey",
    "Limit",
    "ScanIndexForward",
    "ReturnConsumedCapacity",
}
READS = {
    "journal": ("journal", "dynamodb", "Query"),
    "barrier": ("journal", "dynamodb", "GetItem"),
    "queue_source": ("queues", "sqs", "GetQueueAttributes"),
    "queue_dlq": ("queues", "sqs", "GetQueueAttributes"),
    "versions": ("durable", "lambda", "ListVersionsByFunction"),
    "executions": ("durable", "lambda", "ListDurableExecutionsByFunction"),
    "execution": ("durable", "lambda", "GetDurableExecution"),
    "history": ("durable", "lambda", "GetDurableExecutionHistory"),
    "logs": ("logs", "logs", "FilterLogEvents"),
}
PAGED = {
    "Query": ("ExclusiveStartKey", "LastEvaluatedKey"),
    "ListVersionsByFunction": ("Marker", "NextMarker"),
    "ListDurableExecutionsByFunction": ("Marker", "NextMarker"),
    "GetDurableExecutionHistory": ("Marker", "NextMarker"),
}
ENDS = {
    "SUCCEEDED": "ExecutionSucceeded",
    "FAILED": "ExecutionFailed",
    "TIMED_OUT": "ExecutionTimedOut",
    "STOPPED": "ExecutionStopped",
}
SOURCES = {
    "runner": "trial_opened barrier_armed message_send_started message_sent probe_invoked trial_closed",
    "caller": "delivery_received dispatch_started response_received caller_timeout_recorded attempt_failed "
    "outcome_unknown request_finished",
    "provider": "provider_request_received provider_commit_confirmed response_sent response_released "
    "barrier_expired",
    "release": "release_signalled release_refused",
}
S, N = str, int
NEEDS = {
    "message_sent": {"delivery_id": S},
    "delivery_received": {"delivery_id": S, "receive_count": N, "lambda_request_id": S},
    "dispatch_started": {"attempt": N, "delivery_id": S, "lambda_request_id": S, "caused_by": S},
    "response_received": {"transaction_id": S, "elapsed_ms": N, "caused_by": S},
    "caller_timeout_recorded": {"elapsed_ms": N, "caused_by": S},
    "attempt_failed": {"caused_by": S},
    "outcome_unknown": {"caused_by": S},
    "request_finished": {"caused_by": S},
    "provider_request_received": {"attempt": N, "lambda_request_id": S, "caused_by": S},
    "provider_commit_confirmed": {"attempt": N, "transaction_id": S, "caused_by": S},
    "response_sent": {"caused_by": S},
    "response_released": {"caused_by": S},
    "release_signalled": {"caused_by": S},
}
DETAIL = {
    "caller_timeout_recorded": ("deadline_ms", N),
    "attempt_failed": ("code", S),
    "provider_commit_confirmed": ("barrier", S),
}
OUTCOMES = ("response_received", "caller_timeout_recorded", "attempt_failed", "outcome_unknown")
ROW = {
    "trial_id": S,
    "transaction_id": S,
    "refund_request_id": S,
    "payment_id": S,
    "amount_minor": N,
    "currency": S,
    "status": S,
    "seq": N,
    "dispatch_event_id": S,
    "attempt": N,
    "provider_request_id": S,
    "committed_at_ms": N,
}
OUTPUTS = [
    "LedgerTable",
    "JournalTable",
    "BarrierTable",
    "DurableFunction",
    "ProtocolName",
    "ProtocolSha256",
] + ["ConventionalQueueUrl", "ConventionalDlqUrl", "DurableQueueUrl", "DurableDlqUrl"]
REFUND = {"refund_request_id": S, "payment_id": S, "captured_minor": N, "approved_minor": N, "currency": S}


def is_a(value, kind) -> bool:
    return type(value) is kind


def has(document, members) -> bool:
    return is_a(document, dict) and all(is_a(document.get(name), kind) for name, kind in members.items())


def dig(value, *steps):
    """The member at the end of the steps, or None wherever there is none."""
    for step in steps:
        value = value.get(step) if is_a(value, dict) else None
    return value


def text(value) -> str:
    return value if is_a(value, str) else "?"


def listed(value) -> list:
    return [each for each in value if is_a(each, dict)] if is_a(value, list) else []


def strict(data: bytes):
    """The value of one canonical line, or None."""
    try:
        value = json.loads(data.decode(), parse_float=lambda _: 1 / 0)
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return (value,) if text.encode() == data and not wild(value) else None
    except (ValueError, ZeroDivisionError, RecursionError):
        return None


def wild(value, depth=1) -> bool:
    if is_a(value, int):
        return abs(value) > 2**53 - 1
    inner = list(value.values()) if is_a(value, dict) else value if is_a(value, list) else []
    return (depth > 64 and is_a(value, (dict))) or any(wild(each, depth + 1) for each in inner)


def untyped(value):
    """A DynamoDB value as Python; raises ValueError if it is not one."""
    if not is_a(value, dict) or len(value) != 1:
        raise ValueError
    [(kind, inner)] = value.items()
    if kind == "S" and is_a(inner, str) or kind == "BOOL" and is_a(inner, bool):
        return inner
    if kind == "N" and is_a(inner, str) and re.fullmatch("-?(0|[1-9][0-9]{0,15})", inner):
        return int(inner)
    if kind == "M" and is_a(inner, dict):
        return {name: untyped(each) for name, each in inner.items()}
    if kind == "L" and is_a(inner, list):
        return [untyped(each) for each in inner]
    if kind == "NULL" and inner is True:
        return None
    raise ValueError


def once(pairs) -> dict:
    """An object; raises ValueError if a name occurs twice in it."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)


def owner(payload):
    """The trial that an input names, "" for a warm-up, None if it cannot be told."""
    try:
        event = json.loads(payload, object_pairs_hook=once)
        if event.get("ping") is True and "Records" not in event:
            return ""
        bodies = [json.loads(record["body"], object_pairs_hook=once) for record in event["Records"]]
        (name,) = {body["trial_id"] for body in bodies}
        return name if is_a(name, str) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
