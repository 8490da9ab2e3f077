"""The real engines: gateway, IAM, durable mapping, deploy."""

import json
import time

import pytest
from botocore.exceptions import ClientError

from runner.errors import LabError
from runner.local.deploy import deploy, deployed_template
from tests.local.processes import eventually
from tests.local.stackkit import assembly

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def send(cloud, tiny, n: str, *, fail: bool = False) -> None:
    cloud.client("sqs").send_message(
        QueueUrl=tiny["QueueUrl"],
        MessageBody=json.dumps({"n": n, "fail": fail}),
        MessageGroupId=n,
        MessageDeduplicationId=n,
    )


def counts(cloud, queue_url: str) -> tuple[int, int]:
    """Return (visible, in flight)."""
    attributes = cloud.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
    names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    return tuple(int(attributes["Attributes"][name]) for name in names)


def executions(cloud, tiny) -> dict[str, dict]:
    """Return every execution of the durable function by ARN, input and result included."""
    lambda_ = cloud.client("lambda")
    listed = lambda_.list_durable_executions_by_function(FunctionName=tiny["Durable"])["DurableExecutions"]
    arns = [execution["DurableExecutionArn"] for execution in listed]
    return {arn: lambda_.get_durable_execution(DurableExecutionArn=arn) for arn in arns}


def executions_of(cloud, tiny, n: str) -> list[dict]:
    """Return the executions that the message `n` started, in the order of its receives."""
    found = []
    for execution in executions(cloud, tiny).values():
        event = json.loads(execution["InputPayload"])
        if "Records" in event and json.loads(event["Records"][0]["body"])["n"] == n:
            found.append({**execution, "record": event["Records"][0]})
    return sorted(found, key=lambda e: e["record"]["attributes"]["ApproximateReceiveCount"])


def history(cloud, arn: str) -> list[str]:
    events = cloud.client("lambda").get_durable_execution_history(
        DurableExecutionArn=arn, IncludeExecutionData=True
    )["Events"]
    return [event["EventType"] for event in events]


def test_one_step_retry_then_success_deletes_the_message(cloud, tiny):
    send(cloud, tiny, "good")
    assert eventually(lambda: [e["Status"] for e in executions_of(cloud, tiny, "good")] == ["SUCCEEDED"])
    assert eventually(lambda: counts(cloud, tiny["QueueUrl"]) == (0, 0))
    assert counts(cloud, tiny["DlqUrl"]) == (0, 0)
    (execution,) = executions_of(cloud, tiny, "good")
    assert json.loads(execution["Result"]) == "good/2/1"
    assert execution["Version"] == "1"
    assert history(cloud, execution["DurableExecutionArn"]) == [
        "ExecutionStarted",
        "StepStarted",
        "StepFailed",
        "InvocationCompleted",
        "StepStarted",
        "StepSucceeded",
        "InvocationCompleted",
        "ExecutionSucceeded",
    ]
    record = execution["record"]
    assert record["eventSource"] == "aws:sqs"
    assert record["eventSourceARN"] == tiny["QueueArn"]
    assert record["attributes"]["MessageGroupId"] == "good"
    assert record["attributes"]["MessageDeduplicationId"] == "good"
    assert {"SentTimestamp", "SequenceNumber", "ApproximateFirstReceiveTimestamp", "SenderId"} <= record[
        "attributes"
    ].keys()


def test_d07_a_failing_message_starts_one_execution_per_receive_and_ends_in_the_dlq(cloud, tmp_path):
    out = deploy(cloud, assembly(tmp_path, "Refused", visibility_s=3), "Refused")
    send(cloud, out, "bad", fail=True)
    assert eventually(lambda: counts(cloud, out["DlqUrl"]) == (1, 0))
    failed = executions_of(cloud, out, "bad")
    assert [e["Status"] for e in failed] == ["FAILED", "FAILED"]
    assert [e["record"]["attributes"]["ApproximateReceiveCount"] for e in failed] == ["1", "2"]
    assert len({e["record"]["messageId"] for e in failed}) == 1
    assert counts(cloud, out["QueueUrl"]) == (0, 0)
    received = cloud.client("sqs").receive_message(QueueUrl=out["DlqUrl"])["Messages"]
    assert json.loads(received[0]["Body"]) == {"n": "bad", "fail": True}


def test_invoke_of_a_durable_function_waits_and_returns_the_handlers_value(cloud, tiny):
    answer = cloud.client("lambda").invoke(
        FunctionName=tiny["Durable"], Qualifier="live", Payload=b'{"ping": true}'
    )
    assert json.load(answer["Payload"]) == {"pong": True}
    assert answer["StatusCode"] == 200
    assert answer["ExecutedVersion"] == "1"
    assert answer["DurableExecutionArn"] in executions(cloud, tiny)
    assert "FunctionError" not in answer


def test_invoke_unqualified_is_refused_as_on_aws(cloud, tiny):
    with pytest.raises(ClientError) as refused:
        cloud.client("lambda").invoke(FunctionName=tiny["Durable"], Payload=b"{}")
    assert refused.value.response["Error"]["Code"] == "InvalidParameterValueException"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_invoke_of_a_failing_execution_answers_with_a_function_error(cloud, tiny):
    answer = cloud.client("lambda").invoke(
        FunctionName=f"{tiny['Durable']}:live", Payload=b'{"no": "records"}'
    )
    assert answer["StatusCode"] == 200
    assert answer["FunctionError"] == "Unhandled"
    assert json.load(answer["Payload"])["errorType"] == "KeyError"


def test_d07_a_name_makes_invoke_idempotent(cloud, tiny):
    lambda_ = cloud.client("lambda")
    call = {"FunctionName": tiny["Durable"], "Qualifier": "live", "DurableExecutionName": "ref-A1"}
    first = lambda_.invoke(InvocationType="Event", Payload=b'{"ping": true}', **call)
    again = lambda_.invoke(Payload=b'{"ping": true}', **call)
    assert first["StatusCode"] == 202
    assert first["DurableExecutionArn"] == again["DurableExecutionArn"]
    with pytest.raises(ClientError, match="DurableExecutionAlreadyStartedException"):
        lambda_.invoke(Payload=b'{"ping": false}', **call)


def test_the_gateway_passes_requests_through_untouched(cloud, tiny):
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket="through")
    body = bytes(range(256)) * 8192
    s3.put_object(Bucket="through", Key="a b/ç+%.bin", Body=body, Metadata={"m": "v"})
    head = s3.head_object(Bucket="through", Key="a b/ç+%.bin")
    assert (head["ContentLength"], head["Metadata"]) == (len(body), {"m": "v"})
    assert s3.get_object(Bucket="through", Key="a b/ç+%.bin")["Body"].read() == body
    assert s3.get_object(Bucket="through", Key="a b/ç+%.bin", Range="bytes=1-3")["Body"].read() == body[1:4]
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket="through", Key="absent")


def test_queue_urls_name_the_gateway(cloud, tiny):
    assert tiny["QueueUrl"].startswith(cloud.endpoint + "/")


def test_iam_refuses_a_role_without_the_grant(cloud, tiny):
    assert cloud.iam
    sqs = cloud.assume_role(tiny["NoGrants"], "sqs")
    with pytest.raises(ClientError, match="AccessDenied"):
        sqs.send_message(
            QueueUrl=tiny["QueueUrl"], MessageBody="x", MessageGroupId="x", MessageDeduplicationId="x"
        )
    lambda_ = cloud.assume_role(tiny["NoGrants"], "lambda")
    with pytest.raises(ClientError, match="AccessDenied"):
        lambda_.invoke(FunctionName=tiny["Plain"], Payload=b"{}")


def test_deploy_twice_changes_nothing_and_an_update_is_served_by_its_new_version(cloud, tmp_path):
    name = "Changing"
    first = deploy(cloud, assembly(tmp_path, name), name)
    assert deployed_template(cloud, name) == json.loads((tmp_path / f"{name}.template.json").read_text())
    assert deploy(cloud, tmp_path, name) == first
    updated = deploy(cloud, assembly(tmp_path, name, comment="# changed"), name)
    assert updated["MappingId"] == first["MappingId"]
    send(cloud, updated, "after-update")
    assert eventually(lambda: len(executions_of(cloud, updated, "after-update")) == 1)
    (execution,) = executions_of(cloud, updated, "after-update")
    assert execution["Version"] == "2"
    # A deleted stack is no longer served, and the same names can be deployed again.
    cloud.client("cloudformation").delete_stack(StackName=name)
    assert eventually(lambda: deployed_template(cloud, name) is None)
    again = deploy(cloud, assembly(tmp_path, name), name)
    send(cloud, again, "after-delete")
    assert eventually(
        lambda: [e["Status"] for e in executions_of(cloud, again, "after-delete")] == ["SUCCEEDED"]
    )


def test_no_message_reaches_ministacks_own_poller_right_after_a_deploy(cloud, tmp_path):
    # The change set path, as the CDK CLI takes it, and the send at once, before the stack has ended.
    name = "Racing"
    assembly(tmp_path, name)
    deploy(cloud, assembly(tmp_path, "Assets"), "Assets")
    cloudformation = cloud.client("cloudformation")
    cloudformation.create_change_set(
        StackName=name,
        ChangeSetName="c",
        ChangeSetType="CREATE",
        Capabilities=["CAPABILITY_NAMED_IAM"],
        TemplateBody=(tmp_path / f"{name}.template.json").read_text().replace("Assets-", f"{name}-"),
    )
    assert eventually(
        lambda: (
            cloudformation.describe_change_set(StackName=name, ChangeSetName="c")["Status"]
            == "CREATE_COMPLETE"
        )
    )
    cloudformation.execute_change_set(StackName=name, ChangeSetName="c")
    tiny = {"QueueUrl": f"{cloud.endpoint}/{cloud.account}/{name}.fifo", "Durable": f"{name}-durable"}
    send(cloud, tiny, "early")
    assert eventually(lambda: [e["Status"] for e in executions_of(cloud, tiny, "early")] == ["SUCCEEDED"])
    (execution,) = executions_of(cloud, tiny, "early")
    assert execution["record"]["attributes"]["ApproximateReceiveCount"] == "1"


def test_a_template_over_51200_bytes_goes_through_the_bucket(cloud, tmp_path):
    name = "Large"
    assembly(tmp_path, name)
    file = tmp_path / f"{name}.template.json"
    template = json.loads(file.read_text())
    template["Metadata"] = {"padding": "x" * 60_000}
    file.write_text(json.dumps(template))
    assert deploy(cloud, tmp_path, name)["Durable"] == f"{name}-durable"


def test_a_failed_stack_is_refused_with_the_resources_reason(cloud, tmp_path):
    name = "Failing"
    assembly(tmp_path, name)
    file = tmp_path / f"{name}.template.json"
    template = json.loads(file.read_text())
    template["Resources"]["Queue"]["Properties"]["VisibilityTimeout"] = 43201
    file.write_text(json.dumps(template))
    for _ in range(2):
        with pytest.raises(LabError, match=r"Queue \(AWS::SQS::Queue\)"):
            deploy(cloud, tmp_path, name)


def test_clients_see_and_steer_the_durable_mapping_as_on_aws(cloud, tiny):
    lambda_ = cloud.client("lambda")

    def shown(state: str) -> bool:
        listed = lambda_.list_event_source_mappings(FunctionName=tiny["Durable"])["EventSourceMappings"]
        one = lambda_.get_event_source_mapping(UUID=tiny["MappingId"])
        return [m["State"] for m in listed] == [one["State"]] == [state]

    assert shown("Enabled")
    told = lambda_.update_event_source_mapping(UUID=tiny["MappingId"], Enabled=False)["State"]
    assert told in ("Disabling", "Disabled")
    assert eventually(lambda: shown("Disabled"))
    send(cloud, tiny, "paused")
    time.sleep(1)
    assert counts(cloud, tiny["QueueUrl"]) == (1, 0)
    assert lambda_.update_event_source_mapping(UUID=tiny["MappingId"], Enabled=True)["State"] == "Enabled"
    assert eventually(lambda: [e["Status"] for e in executions_of(cloud, tiny, "paused")] == ["SUCCEEDED"])


def test_a_mapping_that_is_disabled_before_its_takeover_stays_so_until_enabled(cloud, tmp_path):
    # CI once waited four minutes for such a mapping to become disabled: the change had been lost.
    name = "Paused"
    assembly(tmp_path, name)
    deploy(cloud, assembly(tmp_path / "assets", "Assets"), "Assets")
    lambda_ = cloud.client("lambda")
    cloud.client("cloudformation").create_stack(
        StackName=name,
        TemplateBody=(tmp_path / f"{name}.template.json").read_text().replace("Assets-", f"{name}-"),
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    mapping = {"FunctionName": f"{name}-durable"}
    # No pause between the reads: a change must meet the moment in which the mapping exists already.
    while not (found := lambda_.list_event_source_mappings(**mapping)["EventSourceMappings"]):
        pass
    uuid = found[0]["UUID"]
    lambda_.update_event_source_mapping(UUID=uuid, Enabled=False)
    tiny = {"QueueUrl": f"{cloud.endpoint}/{cloud.account}/{name}.fifo", "Durable": f"{name}-durable"}
    assert eventually(lambda: lambda_.get_event_source_mapping(UUID=uuid)["State"] == "Disabled")
    send(cloud, tiny, "early")
    time.sleep(1)
    assert counts(cloud, tiny["QueueUrl"]) == (1, 0)
    assert lambda_.update_event_source_mapping(UUID=uuid, Enabled=True)["State"] == "Enabled"
    assert eventually(lambda: [e["Status"] for e in executions_of(cloud, tiny, "early")] == ["SUCCEEDED"])
