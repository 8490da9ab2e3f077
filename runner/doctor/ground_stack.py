"""The throw-away resources of a look at the ground: one small CloudFormation stack, gone afterwards."""

from pathlib import Path
from typing import Any

from runner.names import DURABLE_ALIAS

CODE = Path(__file__).with_name("ground_handlers.py")
FUNCTION_TIMEOUT_S = 4
# Longer than two receives take, also on a machine that is busy with something else.
VISIBILITY_S = 4
# The mapping wants at least the function's timeout; a failed delivery comes again after it.
DURABLE_VISIBILITY_S = 6
EXECUTION_TIMEOUT_S = 30
MAX_RECEIVES = 2
STREAM_FILTER = '{"eventName": ["INSERT"], "dynamodb": {"NewImage": {"wanted": {"BOOL": [true]}}}}'
FUNCTIONS = ("sleeper", "follower", "durable")


def template(layer_arn: str) -> dict[str, Any]:
    """Return the template; the functions' dependencies come from the lab's own layer."""
    resources = {
        "Table": _table(),
        "LogGroup": {
            "Type": "AWS::Logs::LogGroup",
            "DeletionPolicy": "Delete",
            # Begins with the stack's name, as everything whose name CloudFormation makes up does.
            "Properties": {"LogGroupName": {"Fn::Sub": "${AWS::StackName}-logs"}, "RetentionInDays": 1},
        },
        "Role": _role(),
        **_pair("", VISIBILITY_S),
        **_pair("Durable", DURABLE_VISIBILITY_S),
        **{name.capitalize(): _function(name, layer_arn) for name in FUNCTIONS},
        "Version": {"Type": "AWS::Lambda::Version", "Properties": {"FunctionName": {"Ref": "Durable"}}},
        "Alias": {
            "Type": "AWS::Lambda::Alias",
            "Properties": {
                "FunctionName": {"Ref": "Durable"},
                "FunctionVersion": {"Fn::GetAtt": ["Version", "Version"]},
                "Name": DURABLE_ALIAS,
            },
        },
        "Mapping": _mapping({"Ref": "Alias"}, {"Fn::GetAtt": ["DurableQueue", "Arn"]}),
        "StreamMapping": _mapping(
            {"Ref": "Follower"},
            {"Fn::GetAtt": ["Table", "StreamArn"]},
            StartingPosition="TRIM_HORIZON",
            FilterCriteria={"Filters": [{"Pattern": STREAM_FILTER}]},
        ),
    }
    named = ("Table", "Queue", "Dlq", "DurableQueue", "DurableDlq", "Sleeper", "Durable")
    return {"Resources": resources, "Outputs": {name: {"Value": {"Ref": name}} for name in named}}


def _table() -> dict[str, Any]:
    """Keyed as the journal is, because the journal's own append is tried on it."""
    keys = {"trial_id": "HASH", "entry": "RANGE"}
    return {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Delete",
        "Properties": {
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": k, "AttributeType": "S"} for k in keys],
            "KeySchema": [{"AttributeName": k, "KeyType": type_} for k, type_ in keys.items()],
            "StreamSpecification": {"StreamViewType": "NEW_IMAGE"},
        },
    }


def _pair(name: str, visibility_s: int) -> dict[str, Any]:
    redrive = {
        "deadLetterTargetArn": {"Fn::GetAtt": [f"{name}Dlq", "Arn"]},
        "maxReceiveCount": MAX_RECEIVES,
    }
    queue = {"FifoQueue": True, "VisibilityTimeout": visibility_s, "RedrivePolicy": redrive}
    return {
        f"{name}Dlq": {"Type": "AWS::SQS::Queue", "Properties": {"FifoQueue": True}},
        f"{name}Queue": {"Type": "AWS::SQS::Queue", "Properties": queue},
    }


def _function(name: str, layer_arn: str) -> dict[str, Any]:
    durable = {"ExecutionTimeout": EXECUTION_TIMEOUT_S, "RetentionPeriodInDays": 1}
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Runtime": "python3.13",
            "Architectures": ["arm64"],
            "Handler": f"index.{name}",
            "Code": {"ZipFile": CODE.read_text()},
            "Layers": [layer_arn],
            "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            "MemorySize": 1024,
            "Timeout": FUNCTION_TIMEOUT_S,
            "LoggingConfig": {"LogGroup": {"Ref": "LogGroup"}},
            "Environment": {"Variables": {"TABLE": {"Ref": "Table"}}},
            **({"DurableConfig": durable} if name == "durable" else {}),
        },
    }


def _mapping(function: Any, source: Any, **more: Any) -> dict[str, Any]:
    properties = {"FunctionName": function, "EventSourceArn": source, "BatchSize": 1, **more}
    return {"Type": "AWS::Lambda::EventSourceMapping", "Properties": properties}


def _role() -> dict[str, Any]:
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    here = "${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}"
    functions = {"Fn::Sub": f"arn:{here}:function:${{AWS::StackName}}-*"}
    statements = [
        (["dynamodb:UpdateItem"], {"Fn::GetAtt": ["Table", "Arn"]}),
        (
            [f"dynamodb:{a}" for a in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")],
            {"Fn::GetAtt": ["Table", "StreamArn"]},
        ),
        (
            [f"sqs:{a}" for a in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")],
            {"Fn::GetAtt": ["DurableQueue", "Arn"]},
        ),
        (["lambda:CheckpointDurableExecution", "lambda:GetDurableExecutionState"], functions),
        (["logs:CreateLogStream", "logs:PutLogEvents"], {"Fn::GetAtt": ["LogGroup", "Arn"]}),
    ]
    document = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": a, "Resource": r} for a, r in statements],
    }
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
            "Policies": [{"PolicyName": "ground", "PolicyDocument": document}],
        },
    }
