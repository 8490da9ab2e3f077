"""Cleanup against invented answers: what is stopped, what is waited for, what is refused."""

from types import SimpleNamespace
from typing import Any

import pytest

from runner import cli
from runner.audit.cleanup import Cleanup
from runner.commands import audit as commands_audit
from runner.errors import LabError
from runner.names import Output
from tests.account.bench import STACK, Bench, error, refusing

FUNCTION = f"{STACK}-Durable"
ARN = f"arn:aws:lambda:us-east-1:123456789012:function:{FUNCTION}:3/durable-execution/a/1"
DESCRIBED = {"StackName": STACK, "StackId": "arn:stack/1", "StackStatus": "CREATE_COMPLETE"}


def resource(type_: str, physical: str) -> dict[str, str]:
    return {"ResourceType": type_, "PhysicalResourceId": physical, "ResourceStatus": "CREATE_COMPLETE"}


class Account:
    """A stack of one durable function, its mapping and its queue, as answers of a bench."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.executions = {"3": {ARN: "RUNNING"}}
        self.in_flight = 0
        self.mapping = "Enabled"
        self.calls: list[str] = []
        bench.answers |= {
            "ListStackResources": self.resources,
            "GetFunctionConfiguration": lambda *_: {"DurableConfig": {}, "Timeout": 30},
            "ListVersionsByFunction": lambda *_: {"Versions": [{"Version": "$LATEST"}, {"Version": "3"}]},
            "ListDurableExecutionsByFunction": self.listed,
            "StopDurableExecution": self.stop,
            "UpdateEventSourceMapping": self.disable,
            "GetEventSourceMapping": lambda *_: {"State": self.mapping},
            "GetQueueAttributes": lambda *_: {
                "Attributes": {"ApproximateNumberOfMessagesNotVisible": str(self.in_flight)}
            },
            "DeleteStack": self.delete,
        }

    def resources(self, *_: Any) -> dict[str, Any]:
        found = [
            resource("AWS::Lambda::EventSourceMapping", "uuid-of-mapping"),
            resource("AWS::Lambda::Function", FUNCTION),
            resource("AWS::SQS::Queue", "https://sqs.us-east-1.amazonaws.com/123456789012/q.fifo"),
        ]
        return {"StackResourceSummaries": found}

    def listed(self, _operation: str, request: dict[str, Any]) -> dict[str, Any]:
        of = self.executions.get(request.get("Qualifier", ""), {})
        return {"DurableExecutions": [{"DurableExecutionArn": a, "Status": s} for a, s in of.items()]}

    def stop(self, _operation: str, request: dict[str, Any]) -> dict[str, Any]:
        self.calls.append("stop")
        for listed in self.executions.values():
            if request["DurableExecutionArn"] in listed:
                listed[request["DurableExecutionArn"]] = "STOPPED"
        return {}

    def disable(self, *_: Any) -> dict[str, Any]:
        self.calls.append("disable")
        self.mapping = "Disabled"
        return {}

    def delete(self, *_: Any) -> dict[str, Any]:
        self.calls.append("delete")
        return {}

    def clean_up(self, described: dict[str, Any] = DESCRIBED) -> dict[str, Any]:
        self.slept: list[float] = []
        now = SimpleNamespace(s=0.0)

        def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            now.s += seconds

        clock = SimpleNamespace(now_ms=lambda: 1, monotonic=lambda: now.s, sleep=sleep)
        return Cleanup(self.bench.account(), clock, lambda _text: None).run(described)


@pytest.fixture
def account(bench: Bench) -> Account:
    return Account(bench)


def test_d09_an_execution_that_only_a_version_lists_is_stopped_before_the_stack_goes(account):
    done = account.clean_up()
    assert done["executions_stopped"] == [ARN]
    assert done["stack_status"] == "DELETE_COMPLETE"
    assert account.calls == ["disable", "stop", "delete"]


def test_d09_one_execution_under_several_listings_is_stopped_once(account):
    account.executions[""] = account.executions["3"]
    assert account.clean_up()["executions_stopped"] == [ARN]
    assert account.calls.count("stop") == 1


@pytest.mark.parametrize("status", ["PAUSED", "PAUSING", "A_NEW_STATUS"])
def test_d09_an_unknown_status_is_not_terminal(account, status):
    account.executions["3"][ARN] = status
    assert account.clean_up()["executions_stopped"] == [ARN]


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "TIMED_OUT", "STOPPED"])
def test_d09_a_terminal_execution_is_left_alone(account, status):
    account.executions["3"][ARN] = status
    assert account.clean_up()["executions_stopped"] == []
    assert account.calls == ["disable", "delete"]


def test_the_second_page_of_a_listing_is_stopped_too(account):
    def pages(_operation, request):
        if request.get("Qualifier") != "3":
            return {"DurableExecutions": []}
        if "Marker" not in request:
            return {"DurableExecutions": [], "NextMarker": "more"}
        return account.listed(_operation, request)

    account.bench.answers["ListDurableExecutionsByFunction"] = pages
    assert account.clean_up()["executions_stopped"] == [ARN]


def test_d29_what_may_still_run_is_waited_for_as_long_as_a_function_may_run(account):
    account.executions["3"][ARN] = "SUCCEEDED"
    assert account.clean_up()["waited_for_invocations_s"] == 0
    account.in_flight = 1
    assert account.clean_up()["waited_for_invocations_s"] == 30
    assert 30 in account.slept


@pytest.mark.parametrize(
    "operation", ["ListStackResources", "ListDurableExecutionsByFunction", "StopDurableExecution"]
)
def test_what_cannot_be_stopped_keeps_the_stack(account, operation):
    account.bench.answers[operation] = refusing("AccessDeniedException")
    with pytest.raises(LabError, match="AccessDeniedException"):
        account.clean_up()
    assert "delete" not in account.calls


def test_an_execution_that_does_not_end_keeps_the_stack(account):
    account.bench.answers["StopDurableExecution"] = lambda *_: {}
    with pytest.raises(LabError, match="durable executions do not end"):
        account.clean_up()
    assert "delete" not in account.calls


def test_a_deletion_that_fails_names_the_resource_and_the_reason(account):
    failed = {**DESCRIBED, "StackStatus": "DELETE_FAILED"}
    account.bench.answers["DescribeStacks"] = lambda *_: {"Stacks": [failed]}
    event = {
        "LogicalResourceId": "DurableFunction",
        "ResourceType": "AWS::Lambda::Function",
        "ResourceStatus": "DELETE_FAILED",
        "ResourceStatusReason": "executions are running",
    }
    account.bench.answers["DescribeStackEvents"] = lambda *_: {"StackEvents": [event]}
    with pytest.raises(LabError, match=r"DurableFunction \(AWS::Lambda::Function\): executions are running"):
        account.clean_up()


def test_a_stack_that_is_already_going_is_only_waited_for(account):
    states = iter(["DELETE_IN_PROGRESS", "DELETE_COMPLETE"])
    account.bench.answers["DescribeStacks"] = lambda *_: {"Stacks": [{"StackStatus": next(states)}]}
    done = account.clean_up({**DESCRIBED, "StackStatus": "DELETE_IN_PROGRESS"})
    assert done["stack_status"] == "DELETE_COMPLETE"
    assert account.calls == ["delete"]


@pytest.fixture
def on_aws(bench: Bench, monkeypatch, tmp_path):
    """The commands, with `aws` being the bench and nothing to synthesise."""
    assembly = tmp_path / "assembly"
    assembly.mkdir()
    (assembly / f"{STACK}.template.json").write_text('{"Resources": {}}')
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setattr(commands_audit.accounts, "opened", lambda *_: bench.account())
    monkeypatch.setattr(commands_audit, "synthesise", lambda _name: (assembly, False))
    monkeypatch.setitem(commands_audit.DELAY_S, "aws", 0)
    bench.answers["DescribeStacks"] = lambda *_: {"Stacks": [DESCRIBED]}
    bench.answers["GetTemplate"] = lambda *_: {"TemplateBody": {"Resources": {}}}
    return bench


def test_on_aws_nothing_is_deleted_without_yes(on_aws, capsys):
    account = Account(on_aws)
    assert cli.main(["cleanup", "--target", "aws"]) == 64
    assert "--yes" in capsys.readouterr().err
    assert account.calls == []


def test_a_wrong_package_is_refused_before_anything_is_touched(on_aws, capsys, tmp_path):
    account = Account(on_aws)
    assert cli.main(["cleanup", "--target", "aws", "--yes", "--package", str(tmp_path)]) == 64
    assert "is no package" in capsys.readouterr().err
    assert account.calls == []


def test_with_yes_it_is_deleted_and_audited(on_aws, capsys):
    account = Account(on_aws)
    gone = error("DescribeStacks", "ValidationError", f"Stack with id {STACK} does not exist")

    def describe(_operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if not request:
            return {"Stacks": []}
        if "delete" in account.calls:
            raise gone
        return {"Stacks": [DESCRIBED]}

    on_aws.answers["DescribeStacks"] = describe
    on_aws.answers["GetFunctionConfiguration"] = lambda *_: {"DurableConfig": {}, "Timeout": 0}
    assert cli.main(["cleanup", "--target", "aws", "--yes"]) == 0
    assert account.calls == ["disable", "stop", "delete"]
    assert "clean" in capsys.readouterr().out


HELD = {**DESCRIBED, "Outputs": [{"OutputKey": Output.JOURNAL_TABLE, "OutputValue": "journal"}]}


@pytest.mark.parametrize("code", ["AccessDeniedException", "ProvisionedThroughputExceededException"])
def test_a_stack_that_does_not_say_if_a_run_goes_on_in_it_is_left_alone(on_aws, capsys, code):
    account = Account(on_aws)
    on_aws.answers |= {"DescribeStacks": lambda *_: {"Stacks": [HELD]}, "GetItem": refusing(code)}
    assert cli.main(["cleanup", "--target", "aws", "--yes"]) == 70
    assert account.calls == []
    told = capsys.readouterr().err
    assert "nobody can say if a run goes on" in told and code in told and "--force" in told


@pytest.mark.parametrize(
    ("code", "flags"), [("ResourceNotFoundException", ()), ("AccessDeniedException", ("--force",))]
)
def test_a_stack_without_its_journal_table_or_forced_is_taken_away(on_aws, code, flags):
    account = Account(on_aws)
    on_aws.answers |= {"DescribeStacks": lambda *_: {"Stacks": [HELD]}, "GetItem": refusing(code)}
    on_aws.answers["GetFunctionConfiguration"] = lambda *_: {"DurableConfig": {}, "Timeout": 0}
    on_aws.answers["DeleteStack"] = refusing("TheEnd")  # far enough: it was asked to go
    assert cli.main(["cleanup", "--target", "aws", "--yes", *flags]) == 70
    assert account.calls == ["disable", "stop"] and "DeleteStack" in on_aws.asked


def test_an_audit_that_knows_nothing_ends_with_2(on_aws, capsys):
    for operation in ("DescribeStacks", "ListTables", "GetResources"):
        on_aws.answers[operation] = refusing("ThrottlingException")
    on_aws.answers["DescribeStacks"] = lambda *_: {"Stacks": [{**DESCRIBED, "StackStatus": "X"}]}
    assert cli.main(["audit", "--target", "aws"]) == 2
    assert "NOT CLEAN" in capsys.readouterr().out
