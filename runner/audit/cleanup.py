"""Taking a stack away: no new deliveries, no running executions, then the stack itself.

    disable mappings -> stop executions until all are terminal -> let invocations end -> delete the stack

The order matters. A durable function whose executions still run holds its stack's deletion for up to
an hour, and a stopped execution gives its message back to the queue, whose mapping would start another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from runner.audit.ask import Asker
from runner.errors import LabError
from runner.names import GRADES
from runner.targets.accounts import Account
from runner.targets.aws_errors import telling
from runner.targets.target import described_stack
from runner.trials.collect import TERMINAL_STATUSES

POLL_S = 0.5
STOP_LIMIT_S = 300
# CloudFormation itself gives up after an hour.
DELETE_LIMIT_S = 3900
MAPPING_AT_REST = ("Disabled",)
IN_FLIGHT = "ApproximateNumberOfMessagesNotVisible"


@dataclass
class Cleanup:
    """One cleanup: what it works with and what it did."""

    account: Account
    clock: Any
    note: Callable[[str], None]
    done: dict[str, Any] = field(default_factory=dict)

    def run(self, described: dict[str, Any]) -> dict[str, Any]:
        """Take the described stack away and return what was done, as it is frozen."""
        asker = Asker(self.account, self.clock.now_ms)
        self.done = {"stack": described["StackName"], "stack_id": described["StackId"]}
        self.done["started_at_ms"] = self.clock.now_ms()
        if described["StackStatus"] != "DELETE_IN_PROGRESS":
            resources = _resources(self.account, described["StackName"])
            self.done["mappings_disabled"] = self._disable_mappings(resources)
            self.done["executions_stopped"] = self._stop_executions(asker, resources)
            self.done["waited_for_invocations_s"] = self._let_invocations_end(resources)
        self.done["stack_status"] = self._delete_stack(described)
        self.done["ended_at_ms"] = self.clock.now_ms()
        return self.done

    def _disable_mappings(self, resources: list[dict[str, Any]]) -> list[str]:
        client = self.account.client("lambda")
        uuids = [r["PhysicalResourceId"] for r in _of_type(resources, "AWS::Lambda::EventSourceMapping")]
        with telling("disabling the stack's mappings"):
            for uuid in uuids:
                client.update_event_source_mapping(UUID=uuid, Enabled=False)
            until = self.clock.monotonic() + STOP_LIMIT_S
            while any(
                client.get_event_source_mapping(UUID=uuid)["State"] not in MAPPING_AT_REST for uuid in uuids
            ):
                if self.clock.monotonic() > until:
                    raise LabError(
                        "a mapping does not become disabled",
                        expected=f"Disabled within {STOP_LIMIT_S} s",
                        next_step="run cleanup again",
                    )
                self.clock.sleep(POLL_S)
        self.note(f"{len(uuids)} mappings disabled")
        return uuids

    def _stop_executions(self, asker: Asker, resources: list[dict[str, Any]]) -> list[str]:
        """Stop whatever is not terminal, and look again until nothing is left running."""
        names = [r["PhysicalResourceId"] for r in _of_type(resources, "AWS::Lambda::Function")]
        stopped: list[str] = []
        until = self.clock.monotonic() + STOP_LIMIT_S
        while running := sorted(_running(asker, names)):
            with telling("stopping durable executions"):
                for arn in running:
                    if arn not in stopped:
                        self.account.client("lambda").stop_durable_execution(DurableExecutionArn=arn)
                        stopped.append(arn)
            if self.clock.monotonic() > until:
                raise LabError(
                    "durable executions do not end",
                    expected=f"every execution terminal within {STOP_LIMIT_S} s of being stopped",
                    found=", ".join(running),
                    next_step="run cleanup again; the stack would not be deleted while they run",
                )
            self.clock.sleep(POLL_S)
        self.note(f"{len(stopped)} durable executions stopped")
        return stopped

    def _let_invocations_end(self, resources: list[dict[str, Any]]) -> int:
        """Wait as long as a function may run, if anything may be running.

        Stopping an execution does not interrupt its invocation, and a late log line of one can bring
        a deleted log group back where nothing forbids it (CASES D29).
        """
        with telling("looking for deliveries in flight"):
            sqs, functions = self.account.client("sqs"), self.account.client("lambda")
            in_flight = sum(
                int(
                    sqs.get_queue_attributes(QueueUrl=r["PhysicalResourceId"], AttributeNames=[IN_FLIGHT])[
                        "Attributes"
                    ][IN_FLIGHT]
                )
                for r in _of_type(resources, "AWS::SQS::Queue")
            )
            if not in_flight and not self.done["executions_stopped"]:
                return 0
            limit_s = max(
                (
                    functions.get_function_configuration(FunctionName=r["PhysicalResourceId"])["Timeout"]
                    for r in _of_type(resources, "AWS::Lambda::Function")
                ),
                default=0,
            )
        self.note(f"waiting {limit_s} s, as long as a function of the stack may still run")
        self.clock.sleep(limit_s)
        return limit_s

    def _delete_stack(self, described: dict[str, Any]) -> str:
        client = self.account.client
        # By its id: a deleted stack is still described by that, and no namesake is met.
        stack_id = described["StackId"]
        with telling("deleting the stack"):
            client("cloudformation").delete_stack(StackName=described["StackName"])
            until = self.clock.monotonic() + DELETE_LIMIT_S
            while self.clock.monotonic() < until:
                now = described_stack(client, stack_id)
                status = now["StackStatus"] if now else "DELETE_COMPLETE"
                if status == "DELETE_COMPLETE":
                    self.note("the stack is deleted")
                    return status
                if not status.endswith("_IN_PROGRESS"):
                    raise LabError(
                        f"stack {described['StackName']} was not deleted",
                        expected="DELETE_COMPLETE",
                        found=f"{status}: {_first_failure(client, stack_id)}",
                        next_step="mend what the reason names, then run cleanup again",
                    )
                self.clock.sleep(POLL_S)
        raise LabError(
            f"stack {described['StackName']} is still being deleted",
            expected=f"an end within {DELETE_LIMIT_S} s",
            next_step="run cleanup again, which goes on waiting",
        )


def _running(asker: Asker, functions: list[str]) -> Iterator[str]:
    """Yield the executions that may still move; an unknown status is not terminal (CASES D09).

    Every version and unqualified, all pages, united by ARN: a listing by alias proves nothing.
    """
    seen: set[str] = set()
    for name in functions:
        configuration = asker.once("lambda", "GetFunctionConfiguration", FunctionName=name)
        # The local cloud's engine drops DurableConfig, so its absence says nothing there.
        if asker.account.grade == GRADES["aws"] and "DurableConfig" not in configuration:
            continue
        versions = [
            version["Version"]
            for page in asker.pages("lambda", "ListVersionsByFunction", FunctionName=name)
            for version in page["Versions"]
        ]
        for qualifier in (None, *versions):
            request = {"FunctionName": name} | ({"Qualifier": qualifier} if qualifier else {})
            for page in asker.pages("lambda", "ListDurableExecutionsByFunction", **request):
                for execution in page["DurableExecutions"]:
                    arn = execution["DurableExecutionArn"]
                    if arn not in seen and execution["Status"] not in TERMINAL_STATUSES:
                        seen.add(arn)
                        yield arn


def _resources(account: Account, stack: str) -> list[dict[str, Any]]:
    with telling("listing the stack's resources"):
        client = account.client("cloudformation")
        pages = client.get_paginator("list_stack_resources").paginate(StackName=stack)
        return [resource for page in pages for resource in page["StackResourceSummaries"]]


def _of_type(resources: list[dict[str, Any]], type_: str) -> list[dict[str, Any]]:
    return [
        r
        for r in resources
        if r["ResourceType"] == type_
        and r.get("PhysicalResourceId")
        and r["ResourceStatus"] != "DELETE_COMPLETE"
    ]


def _first_failure(client: Callable[[str], Any], stack_id: str) -> str:
    try:
        events = client("cloudformation").describe_stack_events(StackName=stack_id)["StackEvents"]
    except ClientError as error:
        return str(error)
    reasons = [
        f"{e['LogicalResourceId']} ({e['ResourceType']}): {e.get('ResourceStatusReason', 'no reason given')}"
        for e in reversed(events)
        if e["ResourceStatus"] == "DELETE_FAILED"
    ]
    return reasons[-1] if reasons else "no failed resource is listed"
