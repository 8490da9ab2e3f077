"""A deployed template with exactly the resources and numbers that the oracle looks up."""

from __future__ import annotations


def deployed(protocol: dict, name: str, digest: str) -> dict:
    caller, provider, release = protocol["caller"], protocol["provider"], protocol["release"]
    durable = protocol["variants"]["durable"]
    deadline = {"SUC_DEADLINE_MS": str(caller["deadline_ms"])}
    step = {
        "SUC_STEP_NAME": durable["step_name"],
        "SUC_STEP_ATTEMPTS": str(durable["step_attempts"]),
        "SUC_STEP_RETRY_DELAY_S": str(durable["step_retry_delay_s"]),
    }
    hold = {
        "SUC_HOLD_BUDGET_S": str(provider["hold_budget_s"]),
        "SUC_BARRIER_POLL_MS": str(provider["barrier_poll_ms"]),
    }
    resources = {
        "Provider": function("lambdas.provider.handler.handler", provider["function_timeout_s"], hold),
        "Release": function("lambdas.release.handler.handler", release["function_timeout_s"], deadline),
        "Conventional": function(
            "lambdas.caller.conventional.handler", caller["function_timeout_s"], deadline
        ),
        "Durable": function(
            "lambdas.caller.durable.handler",
            caller["function_timeout_s"],
            {**deadline, **step},
            DurableConfig={
                "ExecutionTimeout": durable["execution_timeout_s"],
                "RetentionPeriodInDays": durable["retention_days"],
            },
        ),
        "DurableVersion": {
            "Type": "AWS::Lambda::Version",
            "Properties": {"FunctionName": {"Ref": "Durable"}},
        },
        "DurableLive": {
            "Type": "AWS::Lambda::Alias",
            "Properties": {
                "Name": "live",
                "FunctionName": {"Ref": "Durable"},
                "FunctionVersion": {"Fn::GetAtt": ["DurableVersion", "Version"]},
            },
        },
        "ReleaseMapping": mapping(
            {"Ref": "Release"},
            ["Journal", "StreamArn"],
            BatchSize=1,
            MaximumRetryAttempts=release["max_retries"],
        ),
        "ConventionalMapping": mapping(
            {"Ref": "Conventional"},
            ["ConventionalQueue", "Arn"],
            BatchSize=protocol["variants"]["conventional"]["batch_size"],
        ),
        "DurableMapping": mapping(
            {"Fn::Join": ["", [{"Fn::Select": [6, {"Fn::Split": [":", {"Ref": "DurableLive"}]}]}, ":live"]]},
            ["DurableQueue", "Arn"],
            BatchSize=durable["batch_size"],
        ),
    }
    for variant in ("conventional", "durable"):
        resources |= queues(variant.capitalize(), protocol["variants"][variant])
    return {
        "Resources": resources,
        "Outputs": {"ProtocolName": {"Value": name}, "ProtocolSha256": {"Value": digest}},
    }


def function(handler, timeout, variables, **more):
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Handler": handler,
            "Timeout": timeout,
            "Environment": {"Variables": variables},
            **more,
        },
    }


def mapping(function_name, source, **more):
    return {
        "Type": "AWS::Lambda::EventSourceMapping",
        "Properties": {"FunctionName": function_name, "EventSourceArn": {"Fn::GetAtt": source}, **more},
    }


def queues(prefix, variant):
    redrive = {
        "deadLetterTargetArn": {"Fn::GetAtt": [prefix + "Dlq", "Arn"]},
        "maxReceiveCount": variant["max_receive_count"],
    }
    return {
        prefix + "Queue": {
            "Type": "AWS::SQS::Queue",
            "Properties": {
                "FifoQueue": True,
                "VisibilityTimeout": variant["visibility_timeout_s"],
                "RedrivePolicy": redrive,
            },
        },
        prefix + "Dlq": {"Type": "AWS::SQS::Queue", "Properties": {"FifoQueue": True}},
    }
