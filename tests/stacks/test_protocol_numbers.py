"""Every number of DESIGN 4 in the template of Study 1, and nothing but waits in the rehearsal's."""

import json
from typing import Any

import pytest

from runner.names import Output
from runner.protocol import load
from tests.stacks.snapshot import without_digests
from tests.stacks.synthesis import Assembly

# (output that names the resource, path in its properties) -> value
NUMBERS = {
    (Output.CONVENTIONAL_FUNCTION, "Timeout"): 10,
    (Output.DURABLE_FUNCTION, "Timeout"): 10,
    (Output.PROVIDER_FUNCTION, "Timeout"): 30,
    (Output.RELEASE_FUNCTION, "Timeout"): 10,
    (Output.CONVENTIONAL_FUNCTION, "Environment.Variables.SUC_DEADLINE_MS"): "3000",
    (Output.DURABLE_FUNCTION, "Environment.Variables.SUC_DEADLINE_MS"): "3000",
    (Output.RELEASE_FUNCTION, "Environment.Variables.SUC_DEADLINE_MS"): "3000",
    (Output.PROVIDER_FUNCTION, "Environment.Variables.SUC_HOLD_BUDGET_S"): "20",
    (Output.PROVIDER_FUNCTION, "Environment.Variables.SUC_BARRIER_POLL_MS"): "100",
    (Output.DURABLE_FUNCTION, "Environment.Variables.SUC_STEP_NAME"): "refund-attempt",
    (Output.DURABLE_FUNCTION, "Environment.Variables.SUC_STEP_ATTEMPTS"): "2",
    (Output.DURABLE_FUNCTION, "Environment.Variables.SUC_STEP_RETRY_DELAY_S"): "60",
    (Output.DURABLE_FUNCTION, "DurableConfig"): {"ExecutionTimeout": 300, "RetentionPeriodInDays": 7},
    (Output.CONVENTIONAL_QUEUE_URL, "FifoQueue"): True,
    (Output.CONVENTIONAL_QUEUE_URL, "VisibilityTimeout"): 60,
    (Output.CONVENTIONAL_QUEUE_URL, "RedrivePolicy.maxReceiveCount"): 2,
    (Output.CONVENTIONAL_DLQ_URL, "FifoQueue"): True,
    (Output.DURABLE_QUEUE_URL, "FifoQueue"): True,
    (Output.DURABLE_QUEUE_URL, "VisibilityTimeout"): 360,
    (Output.DURABLE_QUEUE_URL, "RedrivePolicy.maxReceiveCount"): 2,
    (Output.DURABLE_DLQ_URL, "FifoQueue"): True,
}


@pytest.mark.parametrize(("key", "path"), NUMBERS)
def test_study_1_has_the_number_of_the_protocol(study: Assembly, key: str, path: str) -> None:
    value: Any = study.behind(key)
    for part in path.split("."):
        value = value[part]
    assert value == NUMBERS[key, path]


def test_each_variant_has_its_own_queue_pair(study: Assembly) -> None:
    for variant in ("Conventional", "Durable"):
        queue = study.behind(f"{variant}QueueUrl")
        dlq = study.output_id(f"{variant}DlqUrl")
        assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": [dlq, "Arn"]}
    assert len(study.resources("AWS::SQS::Queue")) == 5


def test_d10_no_queue_gives_a_message_back_while_its_function_may_still_run(
    study: Assembly, rehearsal: Assembly
) -> None:
    for assembly in (study, rehearsal):
        conventional = assembly.behind(Output.CONVENTIONAL_QUEUE_URL)["VisibilityTimeout"]
        assert conventional >= assembly.behind(Output.CONVENTIONAL_FUNCTION)["Timeout"]
        execution = assembly.behind(Output.DURABLE_FUNCTION)["DurableConfig"]["ExecutionTimeout"]
        assert execution < assembly.behind(Output.DURABLE_QUEUE_URL)["VisibilityTimeout"]


def test_the_conventional_mapping_takes_one_message_and_reports_no_partial_success(study: Assembly) -> None:
    mapping = _mapping_of(study, Output.CONVENTIONAL_QUEUE_URL)
    assert mapping["BatchSize"] == 1
    assert mapping["FunctionName"] == {"Ref": study.output_id(Output.CONVENTIONAL_FUNCTION)}
    # Raising is how the handler hands the message back: SQS owns the retry.
    assert "FunctionResponseTypes" not in mapping


def test_the_durable_mapping_is_on_the_alias_of_a_published_version(study: Assembly) -> None:
    mapping = _mapping_of(study, Output.DURABLE_QUEUE_URL)
    ((alias_id, alias),) = study.resources("AWS::Lambda::Alias").items()
    ((version_id, version),) = study.resources("AWS::Lambda::Version").items()
    function = {"Ref": study.output_id(Output.DURABLE_FUNCTION)}
    assert (mapping["BatchSize"], mapping["FunctionName"]) == (1, {"Ref": alias_id})
    assert alias["Properties"] == {
        "FunctionName": function,
        "FunctionVersion": {"Fn::GetAtt": [version_id, "Version"]},
        "Name": "live",
    }
    assert version["Properties"]["FunctionName"] == function


def test_the_durable_mapping_waits_for_the_right_to_checkpoint(study: Assembly) -> None:
    (policy,) = study.resources("AWS::IAM::Policy")
    (mapping,) = (
        m
        for m in study.resources("AWS::Lambda::EventSourceMapping").values()
        if m["Properties"] == _mapping_of(study, Output.DURABLE_QUEUE_URL)
    )
    assert mapping["DependsOn"] == [policy]


def test_the_release_controller_sees_inserted_timeouts_alone(study: Assembly) -> None:
    journal, failures = (
        study.output_id(Output.JOURNAL_TABLE),
        study.output_id(Output.RELEASE_FAILURE_QUEUE_URL),
    )
    assert study.behind(Output.JOURNAL_TABLE)["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    (mapping,) = (
        m["Properties"]
        for m in study.resources("AWS::Lambda::EventSourceMapping").values()
        if m["Properties"]["EventSourceArn"] == {"Fn::GetAtt": [journal, "StreamArn"]}
    )
    (pattern,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(pattern["Pattern"]) == {
        "eventName": ["INSERT"],
        "dynamodb": {"NewImage": {"type": {"S": ["caller_timeout_recorded"]}}},
    }
    assert mapping["FunctionName"] == {"Ref": study.output_id(Output.RELEASE_FUNCTION)}
    assert mapping["BatchSize"] == 1
    assert mapping["MaximumRetryAttempts"] == 3
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": {"Fn::GetAtt": [failures, "Arn"]}}}


# What differs between Study 1 and its rehearsal: waits, and the names that follow from the protocol's.
REHEARSED = {
    "Conventional/Function/Timeout": (10, 6),
    "Durable/Function/Timeout": (10, 6),
    "Provider/Function/Timeout": (30, 12),
    "Provider/Function/SUC_HOLD_BUDGET_S": ("20", "8"),
    "Conventional/Queue/VisibilityTimeout": (60, 8),
    "Durable/Queue/VisibilityTimeout": (360, 40),
    "Durable/Function/ExecutionTimeout": (300, 30),
    "Durable/Function/SUC_STEP_RETRY_DELAY_S": ("60", "4"),
}


def test_the_rehearsal_differs_in_waits_alone(study: Assembly, rehearsal: Assembly) -> None:
    renamed = json.loads(
        json.dumps(without_digests(rehearsal.template))
        .replace("SucStudy1Rehearsal", "SucStudy1")
        .replace("study-1-rehearsal", "study-1")
        .replace(load("study-1-rehearsal").title, load("study-1").title)
    )
    differences = _differences("", without_digests(study.template), renamed)
    found = {_short(path): values for path, values in differences}
    assert found == REHEARSED


def _mapping_of(study: Assembly, queue: str) -> dict[str, Any]:
    (mapping,) = (
        m["Properties"]
        for m in study.resources("AWS::Lambda::EventSourceMapping").values()
        if m["Properties"]["EventSourceArn"] == {"Fn::GetAtt": [study.output_id(queue), "Arn"]}
    )
    return mapping


def _differences(path: str, a: Any, b: Any) -> list[tuple[str, tuple[Any, Any]]]:
    if isinstance(a, dict) and isinstance(b, dict):
        keys = a.keys() | b.keys()
        return [d for k in sorted(keys) for d in _differences(f"{path}/{k}", a.get(k), b.get(k))]
    return [] if a == b else [(path, (a, b))]


def _short(path: str) -> str:
    """`/Resources/DurableQueue37924F3C/.../VisibilityTimeout` -> `Durable/Queue/VisibilityTimeout`."""
    parts = path.split("/")
    for kind in ("Function", "Queue"):
        head, _, rest = parts[2].partition(kind)
        if rest:
            return f"{head}/{kind}/{parts[-1]}"
    return path
