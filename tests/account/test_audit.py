"""What an audit may call clean: nothing that it was not told is gone."""

from datetime import UTC, datetime

import pytest

from runner.audit.finding import Status
from runner.audit.kinds import CARRIED, KINDS
from runner.audit.passes import TAGGING
from tests.account.bench import EMPTY, STACK, Bench, refusing, statuses

TABLE, QUEUE, LOGS = "AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Logs::LogGroup"
STREAM = "AWS::DynamoDB::Stream"


def test_an_empty_account_is_clean_and_every_kind_is_named(bench: Bench):
    found = bench.audit(*KINDS)
    assert found.clean
    assert {f.type for f in found.findings} == set(KINDS)
    assert {f.status for f in found.findings} == {Status.GONE}


def test_what_is_there_is_present_and_not_clean(bench: Bench):
    bench.make_table(f"{STACK}-Ledger")
    bench.client("sqs").create_queue(QueueName=f"{STACK}-Queue.fifo", Attributes={"FifoQueue": "true"})
    bench.client("logs").create_log_group(logGroupName=f"{STACK}-provider")
    bench.client("iam").create_role(RoleName=f"{STACK}-Role", AssumeRolePolicyDocument="{}")
    found = bench.audit()
    assert not found.clean
    assert statuses(found, TABLE) == {f"{STACK}-Ledger": "PRESENT"}
    assert statuses(found, QUEUE) == {f"{STACK}-Queue.fifo": "PRESENT"}
    assert statuses(found, LOGS) == {f"{STACK}-provider": "PRESENT"}
    assert statuses(found, "AWS::IAM::Role") == {f"{STACK}-Role": "PRESENT"}
    assert found.as_json()["counts"] == {"PRESENT": 4, "GONE": 7, "UNKNOWN": 0, "REMNANT": 0}


def test_d29_a_log_group_that_comes_back_between_the_passes_is_a_leak(bench: Bench):
    name = f"/aws/lambda/{STACK}-Provider"
    bench.on_sleep = lambda: bench.client("logs").create_log_group(logGroupName=name)
    found = bench.audit()
    (_, first), (_, second) = found.passes
    assert [f.status for f in first if f.type == LOGS] == [Status.GONE]
    assert [(f.identifier, f.status, f.seen.reason) for f in second if f.type == LOGS] == [
        (name, Status.PRESENT, "never expires")
    ]
    assert not found.clean


def test_d29_it_always_looks_twice_with_the_delay_between(bench: Bench):
    found = bench.audit()
    assert bench.slept == [120]
    assert [at_ms for at_ms, _ in found.passes] == [1_000_000, 1_120_000]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("lab-1", "lab-10"), ("SucStudy1", "SucStudy10"), ("SucStudy1", "SucStudy1Rehearsal")],
)
def test_d29_a_prefix_does_not_match_another_stacks_longer_name(bench: Bench, ours, theirs):
    bench.make_table(f"{theirs}-Ledger")
    bench.client("sqs").create_queue(QueueName=f"{theirs}-Queue")
    bench.client("logs").create_log_group(logGroupName=f"{theirs}-provider")
    bench.client("logs").create_log_group(logGroupName=f"/aws/lambda/{theirs}-Provider")
    bench.client("iam").create_role(RoleName=f"{theirs}-Role", AssumeRolePolicyDocument="{}")
    assert bench.audit(stack=ours).clean
    assert not bench.audit(stack=theirs).clean


def test_d30_a_ghost_of_the_tagging_api_is_gone_and_clean(bench: Bench):
    arn = f"arn:aws:dynamodb:us-east-1:123456789012:table/{STACK}-Ledger"
    bench.answers["GetResources"] = lambda *_: {"ResourceTagMappingList": [{"ResourceARN": arn, "Tags": []}]}
    found = bench.audit()
    (ghost,) = [f for f in found.findings if f.found_by == ("tag",)]
    assert (ghost.identifier, ghost.status) == (f"{STACK}-Ledger", Status.GONE)
    assert "ghost" in ghost.seen.reason
    assert found.clean


def test_d30_what_the_tagging_api_misses_is_found_by_name(bench: Bench):
    bench.client("logs").create_log_group(logGroupName=f"/aws/lambda/{STACK}-Provider")
    found = bench.audit()
    assert statuses(found, LOGS) == {f"/aws/lambda/{STACK}-Provider": "PRESENT"}
    assert not found.clean


def test_d30_a_tagged_resource_under_another_name_is_found_by_tag(bench: Bench):
    arn = bench.make_table("renamed")
    bench.answers["GetResources"] = lambda *_: {"ResourceTagMappingList": [{"ResourceARN": arn}]}
    found = bench.audit()
    assert [f.found_by for f in found.findings if f.identifier == "renamed"] == [("tag",)]
    assert not found.clean


def test_d30_access_denied_on_describe_is_unknown_and_not_clean(bench: Bench):
    bench.make_table(f"{STACK}-Ledger")
    bench.answers["DescribeTable"] = refusing("AccessDeniedException")
    found = bench.audit()
    assert statuses(found, TABLE) == {f"{STACK}-Ledger": "UNKNOWN"}
    assert not found.clean


LISTINGS = [
    "DescribeLogGroups",
    "DescribeStacks",
    "GetResources",
    "ListEventSourceMappings",
    "ListFunctions",
    "ListLayers",
    "ListQueues",
    "ListRoles",
    "ListStreams",
    "ListTables",
]


@pytest.mark.parametrize("operation", LISTINGS)
@pytest.mark.parametrize("code", ["AccessDenied", "ThrottlingException", "InternalFailure"])
def test_d30_a_listing_that_fails_is_unknown_and_not_clean(bench: Bench, operation, code):
    bench.answers[operation] = refusing(code)
    found = bench.audit()
    assert Status.UNKNOWN in {f.status for f in found.findings}
    assert not found.clean


def test_d30_an_error_after_the_first_page_is_unknown(bench: Bench):
    def second_page_fails(operation, request):
        if "ExclusiveStartTableName" in request:
            return refusing("InternalServerError")(operation, request)
        return {"TableNames": ["other"], "LastEvaluatedTableName": "other"}

    bench.answers["ListTables"] = second_page_fails
    assert statuses(bench.audit(), TABLE) == {f"{STACK}-*": "UNKNOWN"}


def test_d30_the_second_page_is_read(bench: Bench):
    def pages(_operation, request):
        if "ExclusiveStartTableName" in request:
            return {"TableNames": [f"{STACK}-Ledger"]}
        return {"TableNames": ["other"], "LastEvaluatedTableName": "other"}

    bench.make_table(f"{STACK}-Ledger")
    bench.answers["ListTables"] = pages
    assert statuses(bench.audit(), TABLE) == {f"{STACK}-Ledger": "PRESENT"}


def test_d30_a_table_being_deleted_is_not_yet_clean_and_asked_again(bench: Bench):
    bench.make_table(f"{STACK}-Ledger")
    left = iter(["DELETING", "DELETING", "DELETING"])

    def describe(operation, request):
        status = next(left, None)
        if status is None:
            return refusing("ResourceNotFoundException")(operation, request)
        return {"Table": {"TableStatus": status}}

    bench.answers["DescribeTable"] = describe
    found = bench.audit()
    assert [f.status for _, fs in found.passes for f in fs if f.type == TABLE] == [
        Status.PRESENT,
        Status.PRESENT,
        Status.PRESENT,
        Status.GONE,
    ]
    assert found.clean


def test_d30_a_table_that_stays_deleting_is_never_clean(bench: Bench):
    bench.make_table(f"{STACK}-Ledger")
    bench.answers["DescribeTable"] = lambda *_: {"Table": {"TableStatus": "DELETING"}}
    found = bench.audit()
    assert len(found.passes) == 5
    assert not found.clean


def stream_answers(bench: Bench, status: str) -> str:
    name = f"{STACK}-Journal"
    arn = f"arn:aws:dynamodb:us-east-1:123456789012:table/{name}/stream/2026-11-29T00:00:00.000"
    bench.answers["ListStreams"] = lambda *_: {"Streams": [{"StreamArn": arn, "TableName": name}]}
    bench.answers["DescribeStream"] = lambda *_: {
        "StreamDescription": {"StreamArn": arn, "StreamStatus": status, "TableName": name}
    }
    return arn


def test_the_stream_of_a_deleted_table_is_a_remnant_of_a_day(bench: Bench):
    arn = stream_answers(bench, "DISABLED")
    found = bench.audit()
    (stream,) = [f for f in found.findings if f.type == STREAM]
    assert (stream.identifier, stream.status) == (arn, Status.REMNANT)
    assert stream.seen.expires_at_ms == 1_120_000 + 24 * 3600 * 1000
    assert found.clean


def test_the_stream_of_a_table_that_still_is_there_is_no_remnant(bench: Bench):
    arn = stream_answers(bench, "DISABLED")
    bench.make_table(f"{STACK}-Journal")
    assert statuses(bench.audit(), STREAM) == {arn: "PRESENT"}


def test_a_stream_whose_table_cannot_be_described_is_unknown(bench: Bench):
    arn = stream_answers(bench, "DISABLED")
    bench.answers["DescribeTable"] = refusing("AccessDeniedException")
    assert statuses(bench.audit(), STREAM) == {arn: "UNKNOWN"}


def test_assets_in_the_bootstrap_bucket_are_remnants_and_a_refused_one_unknown(bench: Bench):
    bench.client("s3").create_bucket(Bucket="assets")
    bench.client("s3").put_object(Bucket="assets", Key="there.zip", Body=b"123")
    wanted = ("assets/there.zip", "assets/away.zip", "no-bucket/away.zip")
    found = bench.audit(assets=wanted)
    assert statuses(found, "AWS::S3::Object") == {
        "assets/there.zip": "REMNANT",
        "assets/away.zip": "GONE",
        "no-bucket/away.zip": "GONE",
    }
    assert found.clean
    bench.answers["HeadObject"] = refusing("403")
    assert not bench.audit(assets=wanted).clean


def test_a_type_of_the_template_that_the_audit_does_not_know_is_unknown(bench: Bench):
    found = bench.audit("AWS::DynamoDB::Table", "AWS::SNS::Topic")
    assert statuses(found, "AWS::SNS::Topic") == {f"{STACK}-*": "UNKNOWN"}
    assert not found.clean


def test_what_lives_inside_another_resource_goes_with_it(bench: Bench):
    assert bench.audit(*CARRIED).clean
    bench.client("sqs").create_queue(QueueName=f"{STACK}-Queue")
    assert statuses(bench.audit(*CARRIED), "AWS::SQS::QueuePolicy") == {f"{STACK}-*": "PRESENT"}
    bench.answers["ListRoles"] = refusing("AccessDenied")
    assert statuses(bench.audit(*CARRIED), "AWS::IAM::Policy") == {f"{STACK}-*": "UNKNOWN"}


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sns:us-east-1:123456789012:topic",
        "arn:aws:lambda:us-east-1:123456789012:code-signing-config:csc-1",
    ],
)
def test_a_tagged_resource_of_an_unknown_kind_is_unknown(bench: Bench, arn):
    bench.answers["GetResources"] = lambda *_: {"ResourceTagMappingList": [{"ResourceARN": arn}]}
    found = bench.audit()
    assert statuses(found, TAGGING) == {arn: "UNKNOWN"}
    assert not found.clean


def test_a_stack_being_deleted_is_asked_again(bench: Bench):
    states = iter(["DELETE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"])

    def describe(_operation, request):
        return {"Stacks": [{"StackStatus": next(states)}] if request else []}

    bench.answers["DescribeStacks"] = describe
    found = bench.audit()
    assert len(found.passes) == 3
    assert found.clean


def test_a_throw_away_stack_of_the_doctor_is_found(bench: Bench):
    ground = {"StackName": f"{STACK}-ground-abc123", "StackStatus": "CREATE_COMPLETE"}

    def describe(operation, request):
        if request.get("StackName") == STACK:
            return EMPTY["DescribeStacks"](operation, request)
        return {"Stacks": [ground, {"StackName": "SucStudy10", "StackStatus": "CREATE_COMPLETE"}]}

    bench.answers["DescribeStacks"] = describe
    assert statuses(bench.audit(), "AWS::CloudFormation::Stack") == {
        STACK: "GONE",
        ground["StackName"]: "PRESENT",
    }


def test_every_answer_is_kept_raw(bench: Bench):
    bench.answers["ListTables"] = lambda *_: {"TableNames": [], "At": datetime(2026, 11, 29, tzinfo=UTC)}
    reads = bench.audit().asker.reads.lines
    assert {line["operation"] for line in reads} >= set(LISTINGS)
    assert len([line for line in reads if line["operation"] == "ListTables"]) == 2
