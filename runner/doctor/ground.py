"""A look at the ground: create the throw-away stack, try every behaviour, take the stack away.

The stories run side by side, the probes of one story one after the other, because they share a queue.
"""

import dataclasses
import importlib.metadata
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from runner.audit.cleanup import Cleanup
from runner.clock import SystemClock, new_run_id
from runner.doctor import functions, queues, tables
from runner.doctor.behaviours import Behaviour, Ground, Probe, Result, Told
from runner.doctor.ground_stack import template
from runner.errors import LabError, UsageError
from runner.names import PROJECT
from runner.places import state_dir
from runner.records import canonical
from runner.targets.accounts import Account
from runner.targets.aws_errors import telling
from runner.targets.target import described_stack, outputs_of

FORMAT, VERSION = "suc-ground", 1
STORIES = (
    queues.PROBES,
    tables.PROBES,
    functions.PROBES,
    functions.DURABLE_PROBES,
    functions.DELIVERY_PROBES,
)
CREATE_LIMIT_S = 600
POLL_S = 0.3
# What AWS is left with, said before it is made.
CREATES = "a stack of one table, four queues, three functions, one role and one log group, for a few minutes"


@dataclasses.dataclass(frozen=True)
class Shown:
    """One behaviour and what a probe said of it."""

    behaviour: Behaviour
    result: Result
    observed: str

    def as_json(self) -> dict[str, Any]:
        """Return the behaviour as ground.json has it."""
        return {
            "name": self.behaviour.name,
            "expected": self.behaviour.expected,
            "relied_on": self.behaviour.relied_on,
            "result": str(self.result),
            "observed": self.observed,
        }


def survey(
    account: Account, clock: SystemClock, versions: dict[str, str], note: Callable[[str], None]
) -> dict[str, Any]:
    """Return ground.json's object. The throw-away stack is gone again, whatever happened.

    Raises LabError when it cannot be made, or cannot be taken away (naming it).
    """
    throw_away = dataclasses.replace(account, stack=f"{account.prefix}ground-{new_run_id()[-6:]}")
    layer = _layer(account)
    started = clock.now_ms()
    note(f"creating {throw_away.stack}: {CREATES}")
    try:
        outputs = _create(throw_away, layer, clock)
        note("trying the behaviours")
        shown = try_all(Ground(account.client, outputs, clock))
    finally:
        _take_away(throw_away, clock, note)
    return document(account, throw_away.stack, versions, shown, started, clock.now_ms())


def try_all(ground: Ground) -> list[Shown]:
    """Run every story and return what is shown of every behaviour, in the order of STORIES."""
    for more in ({}, {"read_timeout_s": functions.CLIENT_TIMEOUT_S}):
        # Made before the threads begin: making a client is not safe among them.
        ground.client("lambda", **more)
    ground.client("dynamodb"), ground.client("sqs")
    with ThreadPoolExecutor(len(STORIES)) as pool:
        told = list(pool.map(lambda story: [s for probe in story for s in _shown(probe, ground)], STORIES))
    return [shown for story in told for shown in story]


def _shown(probe: Probe, ground: Ground) -> list[Shown]:
    """Run one probe. What it did not come to say is UNKNOWN, with the error that ended it."""
    told: list[Told] = []
    error = "the probe ended early"
    try:
        told += probe.run(ground)
    except Exception as raised:
        # Whatever it is, it says nothing of the behaviour; a wrong guess would be worse than none.
        error = f"{type(raised).__name__}: {raised}"
    answers = [
        *((Result.HOLDS if one.holds else Result.DIFFERS, one.observed) for one in told),
        *[(Result.UNKNOWN, error)] * (len(probe.behaviours) - len(told)),
    ]
    return [Shown(b, result, seen) for b, (result, seen) in zip(probe.behaviours, answers, strict=True)]


def document(
    account: Account, stack: str, versions: dict[str, str], shown: list[Shown], started: int, ended: int
) -> dict[str, Any]:
    """Return ground.json's object."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "target": account.target,
        "grade": account.grade,
        "region": account.region,
        "account": account.account,
        "stack": stack,
        "started_at_ms": started,
        "ended_at_ms": ended,
        "versions": {**versions, "botocore": importlib.metadata.version("botocore")},
        "counts": {str(result): sum(s.result == result for s in shown) for result in Result},
        "behaviours": [s.as_json() for s in shown],
    }


def sound(found: dict[str, Any]) -> bool:
    """Whether everything that trials rely on holds, and nothing is unknown."""
    return all(
        told["result"] == Result.HOLDS or (told["result"] == Result.DIFFERS and not told["relied_on"])
        for told in found["behaviours"]
    )


def path_of(target: str, account: str, region: str) -> Path:
    """Return where the newest look at a target's ground is kept."""
    return state_dir() / "ground" / f"{target}-{account}-{region}.json"


def keep(found: dict[str, Any]) -> Path:
    """Write ground.json where `load_latest` finds it, with one atomic rename."""
    path = path_of(found["target"], found["account"], found["region"])
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(canonical(found))
    partial.rename(path)
    return path


def load_latest(target: str, account: str, region: str, versions: dict[str, str]) -> dict[str, Any] | None:
    """Return the newest look at this ground, or None.

    `versions` are those of the local cloud's engines (empty on AWS): a look at other ones says
    nothing of these. The reader finds its age in `started_at_ms`.
    """
    path = path_of(target, account, region)
    if not path.is_file():
        return None
    found = json.loads(path.read_bytes())
    wanted = {**versions, "botocore": importlib.metadata.version("botocore")}
    return found if found.get("version") == VERSION and found["versions"] == wanted else None


def _layer(account: Account) -> str:
    """Return the ARN of the lab's own layer, whose SDKs the throw-away functions use too."""
    with telling("looking for the lab's layer"):
        if described_stack(account.client, account.stack) is not None:
            client = account.client("cloudformation")
            for page in client.get_paginator("list_stack_resources").paginate(StackName=account.stack):
                for resource in page["StackResourceSummaries"]:
                    if resource["ResourceType"] == "AWS::Lambda::LayerVersion":
                        return resource["PhysicalResourceId"]
    raise UsageError(
        f"stack {account.stack} is not deployed",
        expected="the lab's stack, whose layer the probes use",
        found="no such stack, or no layer in it",
        next_step="deploy it first",
    )


def _create(account: Account, layer: str, clock: SystemClock) -> dict[str, str]:
    client = account.client("cloudformation")
    tags = {"project": PROJECT, "study": account.study}
    with telling(f"creating {account.stack}"):
        client.create_stack(
            StackName=account.stack,
            TemplateBody=json.dumps(template(layer)),
            Capabilities=["CAPABILITY_IAM"],
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )
        until = clock.monotonic() + CREATE_LIMIT_S
        while clock.monotonic() < until:
            described = described_stack(account.client, account.stack)
            status = described["StackStatus"] if described else "gone"
            if not status.endswith("_IN_PROGRESS"):
                break
            clock.sleep(POLL_S)
    if status != "CREATE_COMPLETE":
        raise LabError(
            f"the throw-away stack {account.stack} could not be created",
            expected="CREATE_COMPLETE",
            found=f"{status} {(described or {}).get('StackStatusReason', '')}".strip(),
            next_step="its events name the resource; `python -m runner audit` shows that nothing stayed",
        )
    return outputs_of(described)


def _take_away(account: Account, clock: SystemClock, note: Callable[[str], None]) -> None:
    try:
        described = described_stack(account.client, account.stack)
        if described is not None:
            Cleanup(account, clock, lambda _text: None).run(described)
        note(f"{account.stack} is gone again")
    except (ClientError, BotoCoreError, LabError) as error:
        raise LabError(
            f"the throw-away stack {account.stack} could not be taken away",
            expected="DELETE_COMPLETE",
            found=str(error),
            next_step=f"delete it: `aws cloudformation delete-stack --stack-name {account.stack}`",
        ) from error
