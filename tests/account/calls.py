"""Real calls, one per action and resource, that show what a role's credentials may do.

Each call names a real table, queue, function or log group of the deployed stack. None of them
changes anything: writes carry a condition that never holds, receipt handles are invented, and
invokes are pings. So "allowed" is any answer but a refusal of access.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from runner.names import DURABLE_ALIAS, Output

# How the services say that the role is not allowed; anything else is an answer of the action itself.
REFUSALS = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException"}

NEVER = "attribute_exists(no_such_attribute)"
TRIAL = {"S": "permission-rehearsal"}
TABLES = {
    Output.LEDGER_TABLE: {"trial_id": TRIAL, "transaction_id": {"S": "none"}},
    Output.JOURNAL_TABLE: {"trial_id": TRIAL, "entry": {"S": "none"}},
    Output.BARRIER_TABLE: {"trial_id": TRIAL},
}
QUEUES = (
    Output.CONVENTIONAL_QUEUE_URL,
    Output.CONVENTIONAL_DLQ_URL,
    Output.DURABLE_QUEUE_URL,
    Output.DURABLE_DLQ_URL,
    Output.RELEASE_FAILURE_QUEUE_URL,
)
FUNCTIONS = {
    "provider": Output.PROVIDER_FUNCTION,
    "release": Output.RELEASE_FUNCTION,
    "conventional": Output.CONVENTIONAL_FUNCTION,
    "durable": Output.DURABLE_FUNCTION,
}
LOG_GROUPS = {
    "provider": Output.PROVIDER_LOG_GROUP,
    "release": Output.RELEASE_LOG_GROUP,
    "conventional": Output.CONVENTIONAL_LOG_GROUP,
    "durable": Output.DURABLE_LOG_GROUP,
}


@dataclass(frozen=True)
class Call:
    """One try: the IAM action it asks for, on what (an output key), and how it is made.

    `way` tells two ways to the same action apart: a plain call and a member of a transaction.
    """

    action: str
    resource: str
    service: str
    make: Callable[[Any], Any]
    way: str = ""


def refusal(client: Any, call: Call) -> str | None:
    """Make the call; return the refusal's code, or None if the role was allowed."""
    try:
        call.make(client)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        return code if code in REFUSALS else None
    return None


def calls(outputs: dict[str, str], stream_arn: str, shard: str, iterator: str) -> list[Call]:
    """Return every call, in the order in which they are tried."""
    made = [*_on_tables(outputs), *_on_queues(outputs), *_on_functions(outputs), *_on_logs(outputs)]
    return [*made, *_on_stream(stream_arn, shard, iterator)]


def _on_tables(outputs: dict[str, str]) -> Iterator[Call]:
    for key, item in TABLES.items():
        name = {"TableName": outputs[key]}
        update = {
            "Key": item,
            "UpdateExpression": "SET touched = :t",
            "ExpressionAttributeValues": {":t": {"S": "x"}},
        }
        writes = {
            "PutItem": ("put_item", "Put", {"Item": item}),
            "UpdateItem": ("update_item", "Update", update),
            "DeleteItem": ("delete_item", "Delete", {"Key": item}),
        }
        for action, (method, member, parameters) in writes.items():
            write = {**name, **parameters, "ConditionExpression": NEVER}
            yield _table(action, key, _calling(method, write))
            yield _table(action, key, _transaction({member: write}), "transaction")
        check = {"ConditionCheck": {**name, "Key": item, "ConditionExpression": NEVER}}
        yield _table("ConditionCheckItem", key, _transaction(check), "transaction")
        yield _table("GetItem", key, _calling("get_item", {**name, "Key": item, "ConsistentRead": True}))
        get = {"TransactItems": [{"Get": {**name, "Key": item}}]}
        yield _table("GetItem", key, _calling("transact_get_items", get), "transaction")
        query = {
            **name,
            "KeyConditionExpression": "trial_id = :t",
            "ExpressionAttributeValues": {":t": TRIAL},
        }
        yield _table("Query", key, _calling("query", query))
        yield _table("Scan", key, _calling("scan", {**name, "Limit": 1}))
        keys = {"RequestItems": {outputs[key]: {"Keys": [item]}}}
        yield _table("BatchGetItem", key, _calling("batch_get_item", keys))
        deletes = {"RequestItems": {outputs[key]: [{"DeleteRequest": {"Key": item}}]}}
        yield _table("BatchWriteItem", key, _calling("batch_write_item", deletes))
        select = {"Statement": f"SELECT * FROM \"{outputs[key]}\" WHERE trial_id = 'none'"}
        yield _table("PartiQLSelect", key, _calling("execute_statement", select))


def _on_queues(outputs: dict[str, str]) -> Iterator[Call]:
    for key in QUEUES:
        url = {"QueueUrl": outputs[key]}
        fifo = (
            {"MessageGroupId": "g", "MessageDeduplicationId": "g"} if outputs[key].endswith(".fifo") else {}
        )
        handle = {**url, "ReceiptHandle": "none"}
        tries = {
            "ReceiveMessage": ("receive_message", {**url, "WaitTimeSeconds": 0}),
            "DeleteMessage": ("delete_message", handle),
            "GetQueueAttributes": ("get_queue_attributes", {**url, "AttributeNames": ["QueueArn"]}),
            "ChangeMessageVisibility": ("change_message_visibility", {**handle, "VisibilityTimeout": 0}),
            "SendMessage": ("send_message", {**url, "MessageBody": "{}", **fifo}),
            "SetQueueAttributes": ("set_queue_attributes", {**url, "Attributes": {}}),
        }
        for action, (method, parameters) in tries.items():
            yield Call(f"sqs:{action}", key, "sqs", _calling(method, parameters))


def _on_functions(outputs: dict[str, str]) -> Iterator[Call]:
    for who, key in FUNCTIONS.items():
        ping: dict[str, Any] = {"FunctionName": outputs[key], "Payload": json.dumps({"ping": True})}
        if who == "durable":
            # The gateway starts executions itself and asks nobody; a dry run goes to the engine
            # that knows the grants.
            ping |= {"Qualifier": DURABLE_ALIAS, "InvocationType": "DryRun"}
        yield Call("lambda:InvokeFunction", key, "lambda", _calling("invoke", ping))


def _on_logs(outputs: dict[str, str]) -> Iterator[Call]:
    for key in LOG_GROUPS.values():
        group = {"logGroupName": outputs[key]}
        stream = {**group, "logStreamName": "permission-rehearsal"}
        line = {**stream, "logEvents": [{"timestamp": 0, "message": "x"}]}
        again = {"logGroupName": f"{outputs[key]}-again"}
        yield Call("logs:CreateLogStream", key, "logs", _calling("create_log_stream", stream))
        yield Call("logs:PutLogEvents", key, "logs", _calling("put_log_events", line))
        yield Call("logs:CreateLogGroup", key, "logs", _calling("create_log_group", again))
        yield Call("logs:FilterLogEvents", key, "logs", _calling("filter_log_events", group))


def _on_stream(arn: str, shard: str, iterator: str) -> Iterator[Call]:
    tries = {
        "DescribeStream": ("describe_stream", {"StreamArn": arn}),
        "GetShardIterator": (
            "get_shard_iterator",
            {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST"},
        ),
        "GetRecords": ("get_records", {"ShardIterator": iterator}),
    }
    for action, (method, parameters) in tries.items():
        yield Call(
            f"dynamodb:{action}",
            Output.JOURNAL_TABLE,
            "dynamodbstreams",
            _calling(method, parameters),
            "stream",
        )


def _table(action: str, key: str, make: Callable[[Any], Any], way: str = "") -> Call:
    return Call(f"dynamodb:{action}", key, "dynamodb", make, way)


def _calling(method: str, parameters: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda client: getattr(client, method)(**parameters)


def _transaction(member: dict[str, Any]) -> Callable[[Any], Any]:
    return _calling("transact_write_items", {"TransactItems": [member]})
