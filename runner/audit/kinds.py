"""Per resource type: how it is listed by the stack's prefix, and what the service says of one.

A listing alone proves nothing: every name it gives is described again (CASES D30).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runner.audit.ask import Asker, Refused
from runner.audit.finding import Seen, deleting, present, remnant

DAY_MS = 24 * 60 * 60 * 1000
LAMBDA_LOGS = "/aws/lambda/"


@dataclass(frozen=True)
class Kind:
    """One resource type. `names` yields what carries the prefix, `describe` asks about one name."""

    type: str
    names: Callable[[Asker], Iterator[str]]
    describe: Callable[[Asker, str], Seen]


def _stacks(ask: Asker) -> Iterator[str]:
    # The stack's own name is the prefix without the hyphen; others are the doctor's throw-away ones.
    yield ask.account.stack
    for page in ask.pages("cloudformation", "DescribeStacks"):
        yield from _own(ask, [stack["StackName"] for stack in page["Stacks"]])


def _stack(ask: Asker, name: str) -> Seen:
    stack = ask.once("cloudformation", "DescribeStacks", StackName=name)["Stacks"][0]
    status = stack["StackStatus"]
    if status == "DELETE_COMPLETE":
        raise Refused("DescribeStacks", "404", status)
    return deleting(status) if status == "DELETE_IN_PROGRESS" else present(status)


def _tables(ask: Asker) -> Iterator[str]:
    for page in ask.pages("dynamodb", "ListTables"):
        yield from _own(ask, page["TableNames"])


def _table(ask: Asker, name: str) -> Seen:
    status = ask.once("dynamodb", "DescribeTable", TableName=name)["Table"]["TableStatus"]
    return deleting(status) if status == "DELETING" else present(status)


def _streams(ask: Asker) -> Iterator[str]:
    for page in ask.pages("dynamodbstreams", "ListStreams"):
        for stream in page["Streams"]:
            if stream["TableName"].startswith(ask.account.prefix):
                yield stream["StreamArn"]


def _stream(ask: Asker, arn: str) -> Seen:
    """A deleted table's stream stays readable for up to 24 hours, and nobody can shorten that."""
    described = ask.once("dynamodbstreams", "DescribeStream", StreamArn=arn)["StreamDescription"]
    status = described["StreamStatus"]
    try:
        ask.once("dynamodb", "DescribeTable", TableName=described["TableName"])
    except Refused as refused:
        if refused.absent and status != "ENABLED":
            return remnant(f"{status}: the stream of a deleted table, for up to 24 h", ask.now_ms() + DAY_MS)
        if not refused.absent:
            raise
    return present(status)


def _queues(ask: Asker) -> Iterator[str]:
    request = {"QueueNamePrefix": ask.account.prefix, "MaxResults": 1000}
    for page in ask.pages("sqs", "ListQueues", **request):
        yield from _own(ask, [url.rsplit("/", 1)[1] for url in page.get("QueueUrls", [])])


def _queue(ask: Asker, name: str) -> Seen:
    ask.once("sqs", "GetQueueUrl", QueueName=name)
    return present("the queue has a URL")


def _functions(ask: Asker) -> Iterator[str]:
    for page in ask.pages("lambda", "ListFunctions"):
        yield from _own(ask, [function["FunctionName"] for function in page["Functions"]])


def _function(ask: Asker, name: str) -> Seen:
    state = ask.once("lambda", "GetFunctionConfiguration", FunctionName=name).get("State", "Active")
    return deleting(state) if state == "Deleting" else present(state)


def _versions(ask: Asker) -> Iterator[str]:
    for name in _functions(ask):
        for page in ask.pages("lambda", "ListVersionsByFunction", FunctionName=name):
            for version in page["Versions"]:
                if version["Version"] != "$LATEST":
                    yield f"{name}:{version['Version']}"


def _version(ask: Asker, name: str) -> Seen:
    function, _, version = name.rpartition(":")
    ask.once("lambda", "GetFunctionConfiguration", FunctionName=function, Qualifier=version)
    return present("a published version")


def _aliases(ask: Asker) -> Iterator[str]:
    for name in _functions(ask):
        for page in ask.pages("lambda", "ListAliases", FunctionName=name):
            for alias in page["Aliases"]:
                yield f"{name}:{alias['Name']}"


def _alias(ask: Asker, name: str) -> Seen:
    function, _, alias = name.rpartition(":")
    version = ask.once("lambda", "GetAlias", FunctionName=function, Name=alias)["FunctionVersion"]
    return present(f"points to version {version}")


def _layers(ask: Asker) -> Iterator[str]:
    for page in ask.pages("lambda", "ListLayers"):
        for name in _own(ask, [layer["LayerName"] for layer in page["Layers"]]):
            # ListLayers shows the newest version alone; CloudFormation may have left older ones.
            for versions in ask.pages("lambda", "ListLayerVersions", LayerName=name):
                for version in versions["LayerVersions"]:
                    yield f"{name}:{version['Version']}"


def _layer(ask: Asker, name: str) -> Seen:
    layer, _, version = name.rpartition(":")
    ask.once("lambda", "GetLayerVersion", LayerName=layer, VersionNumber=int(version))
    return present("a layer version")


def _mappings(ask: Asker) -> Iterator[str]:
    # A mapping has no name of its own: it is ours if its function or its source is.
    prefix = ask.account.prefix
    for page in ask.pages("lambda", "ListEventSourceMappings"):
        for mapping in page["EventSourceMappings"]:
            function = mapping.get("FunctionArn", "").partition(":function:")[2]
            source = mapping.get("EventSourceArn", "").split(":")[5:6]
            names = [function, *(name.removeprefix("table/") for name in source)]
            if any(name.startswith(prefix) for name in names):
                yield mapping["UUID"]


def _mapping(ask: Asker, uuid: str) -> Seen:
    state = ask.once("lambda", "GetEventSourceMapping", UUID=uuid)["State"]
    return deleting(state) if state == "Deleting" else present(state)


def _roles(ask: Asker) -> Iterator[str]:
    for page in ask.pages("iam", "ListRoles"):
        yield from _own(ask, [role["RoleName"] for role in page["Roles"]])


def _role(ask: Asker, name: str) -> Seen:
    ask.once("iam", "GetRole", RoleName=name)
    return present("the role exists")


def _log_groups(ask: Asker) -> Iterator[str]:
    # The second prefix is where a function writes that has no explicit group (CASES D29).
    for prefix in (ask.account.prefix, LAMBDA_LOGS + ask.account.prefix):
        for page in ask.pages("logs", "DescribeLogGroups", logGroupNamePrefix=prefix):
            yield from (group["logGroupName"] for group in page["logGroups"])


def _log_group(ask: Asker, name: str) -> Seen:
    # There is no call that describes one group: the prefix may give its namesakes too.
    for page in ask.pages("logs", "DescribeLogGroups", logGroupNamePrefix=name):
        for group in page["logGroups"]:
            if group["logGroupName"] == name:
                days = group.get("retentionInDays")
                return present(f"keeps its lines for {days} days" if days else "never expires")
    raise Refused("DescribeLogGroups", "404", "no such log group")


def _own(ask: Asker, names: list[str]) -> Iterator[str]:
    yield from (name for name in names if name.startswith(ask.account.prefix))


STACK, STREAM = "AWS::CloudFormation::Stack", "AWS::DynamoDB::Stream"
KINDS = {
    kind.type: kind
    for kind in (
        Kind(STACK, _stacks, _stack),
        Kind("AWS::DynamoDB::Table", _tables, _table),
        Kind(STREAM, _streams, _stream),
        Kind("AWS::SQS::Queue", _queues, _queue),
        Kind("AWS::Lambda::Function", _functions, _function),
        Kind("AWS::Lambda::Version", _versions, _version),
        Kind("AWS::Lambda::Alias", _aliases, _alias),
        Kind("AWS::Lambda::LayerVersion", _layers, _layer),
        Kind("AWS::Lambda::EventSourceMapping", _mappings, _mapping),
        Kind("AWS::IAM::Role", _roles, _role),
        Kind("AWS::Logs::LogGroup", _log_groups, _log_group),
    )
}

# Types that live inside another resource and go with it: nothing of theirs can be left alone.
CARRIED = {"AWS::SQS::QueuePolicy": "AWS::SQS::Queue", "AWS::IAM::Policy": "AWS::IAM::Role"}
