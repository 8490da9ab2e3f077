"""Audit before, cleanup, audit after, and a leftover planted, on the local cloud, as typed."""

import hashlib
import json
import time
from pathlib import Path

import pytest

from runner import cli
from runner.audit.cleanup import Cleanup
from runner.local.deploy import deploy
from runner.names import Output
from runner.targets.target import described_stack
from tests.account import planted
from tests.account.conftest import REHEARSAL
from tests.local.processes import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LOGS = "AWS::Logs::LogGroup"


def command(capsys, name: str, *more: str) -> tuple[int, dict]:
    capsys.readouterr()
    arguments = [name, "--protocol", REHEARSAL, "--target", "local", "--delay-s", "1", "--json", *more]
    code = cli.main(arguments)
    told = capsys.readouterr()
    assert told.out, told.err
    return code, json.loads(told.out)


def last(found: dict) -> list[dict]:
    return found["passes"][-1]["findings"]


def outputs_of(cloud, stack: str) -> dict[str, str]:
    described = cloud.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    return {o["OutputKey"]: o["OutputValue"] for o in described["Outputs"]}


def start_execution(cloud, outputs: dict[str, str]) -> str:
    """Send one message whose provider call is held, and return the execution once it runs."""
    trial = {"S": "cleanup-trial"}
    cloud.client("dynamodb").put_item(
        TableName=outputs[Output.BARRIER_TABLE],
        Item={"trial_id": trial, "state": {"S": "ARMED"}, "armed_event_id": {"S": "none"}},
    )
    request = {
        "refund_request_id": "ref-poc-001",
        "payment_id": "pay-1",
        "captured_minor": 10000,
        "approved_minor": 10000,
        "currency": "BRL",
    }
    cloud.client("sqs").send_message(
        QueueUrl=outputs[Output.DURABLE_QUEUE_URL],
        MessageBody=json.dumps({"trial_id": trial["S"], "request": request}),
        MessageGroupId=trial["S"],
        MessageDeduplicationId=trial["S"],
    )
    until = time.monotonic() + 60
    while time.monotonic() < until:
        listed = cloud.client("lambda").list_durable_executions_by_function(
            FunctionName=outputs[Output.DURABLE_FUNCTION]
        )["DurableExecutions"]
        if running := [e["DurableExecutionArn"] for e in listed if e["Status"] == "RUNNING"]:
            return running[0]
        time.sleep(0.05)
    raise AssertionError("no execution began")


def test_d29_d30_audit_cleanup_audit(cloud, stack, capsys, tmp_path, monkeypatch):
    code, before = command(capsys, "audit", "--out", str(tmp_path / "audit.json"))
    assert (code, before["clean"]) == (2, False)
    found = {f["type"] for f in last(before) if f["status"] == "PRESENT"}
    template = cloud.client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    assert found == {r["Type"] for r in template["Resources"].values()} | {
        "AWS::CloudFormation::Stack",
        "AWS::DynamoDB::Stream",
    }
    frozen = json.loads((tmp_path / "audit.json").read_text())
    assert frozen == {k: v for k, v in before.items() if k not in ("addendum", "package")}

    outputs, started = outputs_of(cloud, stack), []
    disable = Cleanup._disable_mappings

    def begin_and_disable(cleanup, resources):
        # Not before the command begins: on a slow machine the execution would have ended by itself.
        started.append(start_execution(cloud, outputs))
        return disable(cleanup, resources)

    monkeypatch.setattr(Cleanup, "_disable_mappings", begin_and_disable)
    code, after = command(capsys, "cleanup")
    assert [f for f in last(after) if f["status"] in ("PRESENT", "UNKNOWN")] == []
    assert (code, after["clean"]) == (0, True)
    assert {f["status"] for f in last(after)} == {"GONE", "REMNANT"}
    # The tagging API goes on listing deleted tables, here as on AWS.
    ghosts = [f for f in last(after) if f["found_by"] == ["tag"]]
    assert ghosts and {f["status"] for f in ghosts} == {"GONE"}
    done = json.loads((Path(after["addendum"]) / "cleanup.json").read_text())
    assert done["executions_stopped"] == started != []
    assert done["waited_for_invocations_s"] == 12
    assert len(done["mappings_disabled"]) == 3
    assert done["stack_status"] == "DELETE_COMPLETE"

    code, again = command(capsys, "cleanup")
    assert (code, again["clean"]) == (0, True)


def test_d29_a_log_group_that_a_deleted_stack_leaves_is_found(cloud, assembly, stack, capsys, tmp_path):
    template = planted.copy(assembly, stack, stack, tmp_path)
    provider = template["Outputs"][Output.PROVIDER_FUNCTION]["Value"]["Ref"]
    del template["Resources"][provider]["Properties"]["LoggingConfig"]
    planted.write(tmp_path, stack, template)
    outputs = deploy(cloud, tmp_path, stack)
    function = outputs[Output.PROVIDER_FUNCTION]
    cloud.client("lambda").invoke(FunctionName=function, Payload=b'{"ping": true}')
    cloud.client("cloudformation").delete_stack(StackName=stack)
    assert eventually(lambda: described_stack(cloud.client, stack) is None)

    code, found = command(capsys, "audit")
    assert code == 2
    left = [f for f in last(found) if f["status"] == "PRESENT"]
    assert [(f["type"], f["identifier"], f["reason"]) for f in left] == [
        (LOGS, f"/aws/lambda/{function}", "never expires")
    ]
    cloud.client("logs").delete_log_group(logGroupName=f"/aws/lambda/{function}")
    assert command(capsys, "audit")[0] == 0


def test_an_addendum_is_named_by_its_index_and_lists_every_file(cloud, capsys):
    _, found = command(capsys, "audit")
    folder = Path(found["addendum"])
    index = (folder / "index.json").read_bytes()
    assert folder.name == hashlib.sha256(index).hexdigest()
    told = json.loads(index)
    assert (told["format"], told["version"], told["kind"]) == ("suc-addendum", 1, "audit")
    assert {f["path"] for f in told["files"]} | {"index.json"} == {p.name for p in folder.iterdir()}
    for file in told["files"]:
        data = (folder / file["path"]).read_bytes()
        assert (file["size"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
