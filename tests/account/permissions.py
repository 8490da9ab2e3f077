"""The permission rehearsal: every role of the deployed stack is assumed and tried.

`rehearse` makes every call of `calls.py` as every role and compares with NEEDS: a needed call that
is refused is a missing grant, any other that is allowed is an excess one. Three kinds of grant
are beyond the emulator, which refuses or allows them whatever the policy says: a role's own log
group, the journal's stream and the durable routes. They are read off the template instead.

`python -m tests.account.permissions` prints the table of the stack on a local cloud of its own.
"""

import sys
from dataclasses import dataclass
from typing import Any

from runner import protocol as protocols
from runner.local.cloud import Cloud, ensure
from runner.local.deploy import deploy, deployed_template
from runner.names import Output, stack_name
from runner.targets.assembly import synthesise
from tests.account.calls import FUNCTIONS, LOG_GROUPS, Call, calls, refusal
from tests.stacks.access import Grant, grants

APPEND = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
CONSUME = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
INVOKE = ("lambda:InvokeFunction",)

# All that each handler, and the mapping that feeds it, cannot do without. Everything else that
# `calls.py` tries must be refused.
NEEDS = {
    "provider": {
        Output.LEDGER_TABLE: ("dynamodb:PutItem",),
        Output.BARRIER_TABLE: ("dynamodb:GetItem", "dynamodb:UpdateItem"),
        Output.JOURNAL_TABLE: APPEND,
    },
    "release": {
        Output.BARRIER_TABLE: ("dynamodb:GetItem", "dynamodb:UpdateItem"),
        Output.JOURNAL_TABLE: APPEND,
        Output.RELEASE_FAILURE_QUEUE_URL: ("sqs:SendMessage",),
    },
    "conventional": {
        Output.JOURNAL_TABLE: APPEND,
        Output.PROVIDER_FUNCTION: INVOKE,
        Output.CONVENTIONAL_QUEUE_URL: CONSUME,
    },
    "durable": {
        Output.JOURNAL_TABLE: APPEND,
        Output.PROVIDER_FUNCTION: INVOKE,
        Output.DURABLE_QUEUE_URL: CONSUME,
    },
}

# What the emulator cannot show, and so the template must: who, action, resource.
STREAM = tuple(f"dynamodb:{a}" for a in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"))
CHECKPOINT = ("lambda:CheckpointDurableExecution", "lambda:GetDurableExecutionState")
ON_TEMPLATE = {
    Grant(who, action, f"{LOG_GROUPS[who]}.Arn")
    for who in FUNCTIONS
    for action in ("logs:CreateLogStream", "logs:PutLogEvents")
}
ON_TEMPLATE |= {Grant("release", action, "JournalTable.StreamArn") for action in STREAM}
ON_TEMPLATE |= {Grant("durable", action, "DurableFunction.Arn:*") for action in CHECKPOINT}


@dataclass(frozen=True)
class Row:
    """One line of the permission table."""

    who: str
    action: str
    resource: str
    way: str
    expected: str
    found: str
    by: str

    @property
    def problem(self) -> str | None:
        """Say what is wrong, or None."""
        if self.expected == self.found:
            return None
        kind = "missing" if self.expected == "allowed" else "excess"
        way = f" in a {self.way}" if self.way else ""
        return f"{kind} grant: {self.who} {self.action} on {self.resource}{way} ({self.by})"


def rehearse(cloud: Cloud, stack: str) -> list[Row]:
    """Try everything as every role, read the rest off the template, and return the whole table."""
    described = cloud.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    outputs = {o["OutputKey"]: o["OutputValue"] for o in described["Outputs"]}
    tried = calls(outputs, **_stream(cloud, outputs[Output.JOURNAL_TABLE]))
    rows = []
    for who, key in FUNCTIONS.items():
        role = cloud.client("lambda").get_function_configuration(FunctionName=outputs[key])["Role"]
        clients = {service: cloud.assume_role(role, service) for service in {c.service for c in tried}}
        rows += [_tried(who, call, clients[call.service]) for call in tried if not _beyond(who, call)]
    return rows + on_template(deployed_template(cloud, stack))


def on_template(template: dict[str, Any]) -> list[Row]:
    """Return the rows of what is read off the template: the grants that no call can show.

    A grant of an action that is neither tried nor expected is a row too, and an excess one.
    """
    granted = set(grants(template))
    beyond = {grant for grant in granted if not _is_tried(grant)}
    return [
        Row(
            grant.who,
            grant.action,
            grant.resource,
            "",
            "allowed" if grant in ON_TEMPLATE else "refused",
            "allowed" if grant in granted else "refused",
            "template",
        )
        for grant in sorted(beyond | ON_TEMPLATE)
    ]


def problems(rows: list[Row]) -> list[str]:
    """Return what is missing and what is in excess, one sentence each."""
    return [row.problem for row in rows if row.problem]


def _tried(who: str, call: Call, client: Any) -> Row:
    needed = call.action in NEEDS[who].get(call.resource, ())
    refused = refusal(client, call)
    return Row(
        who,
        call.action,
        call.resource,
        call.way,
        "allowed" if needed and call.way != "stream" else "refused",
        "refused" if refused else "allowed",
        refused or "real call",
    )


def _beyond(who: str, call: Call) -> bool:
    """Whether the emulator would refuse the call although the role holds the grant."""
    own_log = call.resource == LOG_GROUPS[who] and call.action != "logs:CreateLogGroup"
    return (own_log and call.action != "logs:FilterLogEvents") or (who == "release" and call.way == "stream")


def _is_tried(grant: Grant) -> bool:
    """Whether a real call covers the grant: an action of `calls.py` on a table, queue or function."""
    services = ("dynamodb:", "sqs:", "lambda:InvokeFunction")
    known = {f"{key}.Arn" for needs in NEEDS.values() for key in needs} | {f"{Output.LEDGER_TABLE}.Arn"}
    return grant.action.startswith(services) and grant.resource in known and grant.action in _actions()


def _actions() -> set[str]:
    placeholder = dict.fromkeys(Output.all(), "x")
    return {call.action for call in calls(placeholder, stream_arn="x", shard="x", iterator="x")}


def _stream(cloud: Cloud, table: str) -> dict[str, str]:
    arn = cloud.client("dynamodb").describe_table(TableName=table)["Table"]["LatestStreamArn"]
    streams = cloud.client("dynamodbstreams")
    shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST")
    return {"stream_arn": arn, "shard": shard, "iterator": iterator["ShardIterator"]}


def table(rows: list[Row]) -> str:
    """Return the table as Markdown: allowed calls one by one, refused ones gathered per role."""
    lines = ["| role | may | on | shown by |", "|---|---|---|---|"]
    for row in rows:
        if row.found == "allowed":
            by = f"{row.by}{', in a ' + row.way if row.way else ''}"
            lines.append(f"| {row.who} | {row.action} | {row.resource} | {by} |")
    lines += ["", "| role | refused on | actions tried |", "|---|---|---|"]
    refused: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.found == "refused":
            name = row.action.split(":")[1] + (f" ({row.way})" if row.way else "")
            refused.setdefault((row.who, row.resource), []).append(name)
    lines += [f"| {who} | {on} | {', '.join(actions)} |" for (who, on), actions in refused.items()]
    tried = sum(row.by != "template" for row in rows)
    lines += ["", f"{tried} real calls, {len(rows) - tried} grants read off the template, "]
    return "\n".join(lines) + f"{len(problems(rows))} problems."


def main() -> int:
    """Print the table of the rehearsal's stack; 0 when nothing is missing or in excess."""
    protocol = protocols.load("study-1-rehearsal")
    name = stack_name(protocol.name)
    with ensure(iam=True) as cloud:
        deploy(cloud, synthesise(protocol.name)[0], name)
        rows = rehearse(cloud, name)
    print(table(rows))
    for problem in problems(rows):
        print(problem)
    return 1 if problems(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
