"""The account, region and stack that cleanup, audit and doctor work on; nothing is deployed here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runner.errors import UsageError
from runner.names import stack_name
from runner.protocol import Protocol
from runner.targets.aws_errors import telling
from runner.targets.target import aws_clients, grade


@dataclass(frozen=True)
class Account:
    """Where a stack is or was. `client(service)` sends with explicit timeouts and attempts."""

    target: str
    grade: str
    region: str
    account: str
    stack: str
    study: str
    client: Callable[[str], Any] = field(repr=False)

    @property
    def prefix(self) -> str:
        """What every name of this stack begins with; the hyphen keeps `lab-1` from meaning `lab-10`."""
        return f"{self.stack}-"


def opened(target: str, protocol: Protocol) -> Account:
    """Return the account of a target.

    Raises LabError when AWS cannot be asked, UsageError when no local cloud is up: one that a run
    brought up itself ended with everything in it.
    """
    if target == "local":
        return _local(protocol)
    with telling("asking who we are"):
        client = aws_clients()
        # Before STS, which answers without a region.
        meta = client("cloudformation").meta
        account = client("sts").get_caller_identity()["Account"]
    name, graded = stack_name(protocol.name), grade("aws", meta.endpoint_url)
    return Account("aws", graded, meta.region_name, account, name, protocol.name, client)


def _local(protocol: Protocol) -> Account:
    from runner.local import launch
    from runner.local.cloud import Cloud

    running = launch.find()
    if running is None:
        raise UsageError(
            "no local cloud is up",
            expected="a cloud of `python -m runner local up`",
            found="none; a cloud that a run brings up itself ends with the run and leaves nothing",
            next_step="python -m runner local up",
        )
    return of_cloud(Cloud(running), protocol)


def of_cloud(cloud: Any, protocol: Protocol) -> Account:
    """Return the account of a local cloud that is up."""
    local = grade("local", cloud.endpoint)
    name = stack_name(protocol.name)
    return Account("local", local, cloud.region, cloud.account, name, protocol.name, cloud.client)
