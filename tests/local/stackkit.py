"""Tiny CloudFormation assemblies: a durable caller behind a FIFO queue, and a plain function."""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import aws_durable_execution_sdk_python

from runner.local.deploy import QUALIFIER

# The emulator runs every function with this Python, whatever the Runtime says.
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
BUCKET = f"cdk-{QUALIFIER}-assets-${{AWS::AccountId}}-${{AWS::Region}}"

# A step that fails on its first attempt and, if the message says so, on all of them.
DURABLE_CODE = """
from aws_durable_execution_sdk_python import durable_execution
from aws_durable_execution_sdk_python.config import Duration, StepConfig
from aws_durable_execution_sdk_python.retries import RetryDecision
import json

def retry(error, attempts):
    return RetryDecision.retry(Duration.from_seconds(1)) if attempts < 2 else RetryDecision.no_retry()

@durable_execution
def handler(event, context):
    if event == {"ping": True}:
        return {"pong": True}
    record = event["Records"][0]
    body = json.loads(record["body"])
    def attempt(step):
        if step.attempt == 1 or body.get("fail"):
            raise RuntimeError("no answer")
        return "%s/%s/%s" % (body["n"], step.attempt, record["attributes"]["ApproximateReceiveCount"])
    return context.step(attempt, name="refund-attempt", config=StepConfig(retry_strategy=retry))
"""

PLAIN_CODE = """
import os, time
def handler(event, context):
    print("hello")
    time.sleep(event.get("sleep", 0))
    return {"echo": event, "tmp": os.environ["TMPDIR"]}
"""

TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}


# Longer than any execution takes, cold start on a slow machine included, or a second one would begin.
PATIENT_S = 120


def assembly(folder: Path, stack: str, *, comment: str = "", visibility_s: int = PATIENT_S) -> Path:
    """Write a CDK-like assembly of one stack: template, assets manifest, two code assets and a layer."""
    files = {}
    assets = {
        "durable": {"handler_module.py": DURABLE_CODE + comment},
        "plain": {"handler_module.py": PLAIN_CODE},
        # A pointer to the installed packages instead of a copy (TRIALS 2): the layer is one line.
        "layer": {f"python/lib/{PYTHON}/site-packages/deps.pth": f"{_site_packages()}\n"},
    }
    keys = {name: _asset(folder, name, content, files) for name, content in assets.items()}
    template = _template(stack, keys, visibility_s)
    (folder / f"{stack}.template.json").write_text(json.dumps(template))
    (folder / f"{stack}.assets.json").write_text(json.dumps({"files": files}))
    return folder


def _site_packages() -> Path:
    return Path(aws_durable_execution_sdk_python.__file__).parents[1]


def _asset(folder: Path, name: str, content: dict[str, str], files: dict) -> str:
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    target = folder / f"asset.{digest}"
    shutil.rmtree(target, ignore_errors=True)
    for path, text in content.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text)
    files[digest] = {
        "source": {"path": target.name, "packaging": "zip"},
        "destinations": {"here": {"bucketName": BUCKET, "objectKey": f"{digest}.zip"}},
    }
    return f"{digest}.zip"


def _code(key: str) -> dict:
    return {"S3Bucket": {"Fn::Sub": BUCKET}, "S3Key": key}


def _template(stack: str, keys: dict[str, str], visibility_s: int) -> dict:
    function = {"Runtime": "python3.13", "Handler": "handler_module.handler", "Layers": [{"Ref": "Layer"}]}
    version = f"Version{keys['durable'][:8]}"
    queue = {"FifoQueue": True, "VisibilityTimeout": visibility_s}
    return {
        "Resources": {
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "AssumeRolePolicyDocument": TRUST,
                    "Policies": [
                        {
                            "PolicyName": "durable",
                            "PolicyDocument": {
                                "Version": "2012-10-17",
                                "Statement": [
                                    {
                                        "Effect": "Allow",
                                        "Action": [
                                            "lambda:CheckpointDurableExecution",
                                            "lambda:GetDurableExecutionState",
                                        ],
                                        "Resource": "*",
                                    }
                                ],
                            },
                        }
                    ],
                },
            },
            "NoGrants": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}},
            "Layer": {
                "Type": "AWS::Lambda::LayerVersion",
                "Properties": {"LayerName": f"{stack}-deps", "Content": _code(keys["layer"])},
            },
            "Plain": {
                "Type": "AWS::Lambda::Function",
                "Properties": {
                    **function,
                    "Timeout": 60,
                    "FunctionName": f"{stack}-plain",
                    "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                    "Code": _code(keys["plain"]),
                },
            },
            "Durable": {
                "Type": "AWS::Lambda::Function",
                "Properties": {
                    **function,
                    "Timeout": 60,
                    "FunctionName": f"{stack}-durable",
                    "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                    "Code": _code(keys["durable"]),
                    "DurableConfig": {"ExecutionTimeout": 100, "RetentionPeriodInDays": 7},
                },
            },
            version: {"Type": "AWS::Lambda::Version", "Properties": {"FunctionName": {"Ref": "Durable"}}},
            "Alias": {
                "Type": "AWS::Lambda::Alias",
                "Properties": {
                    "FunctionName": {"Ref": "Durable"},
                    "FunctionVersion": {"Fn::GetAtt": [version, "Version"]},
                    "Name": "live",
                },
            },
            "Dlq": {
                "Type": "AWS::SQS::Queue",
                "Properties": {"FifoQueue": True, "QueueName": f"{stack}-dlq.fifo"},
            },
            "Queue": {
                "Type": "AWS::SQS::Queue",
                "Properties": {
                    **queue,
                    "QueueName": f"{stack}.fifo",
                    "RedrivePolicy": {
                        "deadLetterTargetArn": {"Fn::GetAtt": ["Dlq", "Arn"]},
                        "maxReceiveCount": 2,
                    },
                },
            },
            "Mapping": {
                "Type": "AWS::Lambda::EventSourceMapping",
                "Properties": {
                    "EventSourceArn": {"Fn::GetAtt": ["Queue", "Arn"]},
                    "FunctionName": {"Ref": "Alias"},
                    "BatchSize": 1,
                },
            },
        },
        "Outputs": {
            "QueueUrl": {"Value": {"Ref": "Queue"}},
            "DlqUrl": {"Value": {"Ref": "Dlq"}},
            "QueueArn": {"Value": {"Fn::GetAtt": ["Queue", "Arn"]}},
            "Durable": {"Value": {"Ref": "Durable"}},
            "Plain": {"Value": {"Ref": "Plain"}},
            "NoGrants": {"Value": {"Fn::GetAtt": ["NoGrants", "Arn"]}},
            "MappingId": {"Value": {"Ref": "Mapping"}},
        },
    }
