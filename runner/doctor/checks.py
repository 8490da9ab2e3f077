"""What must be in order before anything costs money; each check says what to do about it."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from runner.cost import estimate as cost
from runner.errors import LabError, UsageError
from runner.names import Output
from runner.protocol import Protocol
from runner.runs.history import Past
from runner.study.stages import STAGES, stage
from runner.targets.accounts import Account
from runner.targets.aws_errors import explained
from runner.targets.deployed import differences
from runner.targets.target import AT_REST, after_status, described_stack, outputs_of

BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
# What the synthesised template's own rule asks for.
BOOTSTRAP_NEEDED = 6
# All four trials at once: each a caller and up to two provider calls, and the release controller.
CONCURRENCY_NEEDED = 13
TOOL_LIMIT_S = 30
SOURCES = (Output.CONVENTIONAL_QUEUE_URL, Output.DURABLE_QUEUE_URL)


class Health(StrEnum):
    """PROBLEM and UNKNOWN end the doctor with 2."""

    OK = "OK"
    PROBLEM = "PROBLEM"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Check:
    """One answer of the doctor."""

    name: str
    health: Health
    found: str
    next_step: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the check as it is printed."""
        return {**asdict(self), "health": str(self.health)}


@dataclass(frozen=True)
class Patient:
    """What is examined."""

    account: Account
    protocol: Protocol
    assembly: Path
    runs: list[Past] = field(default_factory=list)


def refused(name: str, error: LabError) -> Check:
    """Return the check of a question that got no answer."""
    return Check(name, Health.UNKNOWN, f"{error.subject}: {error.found}", error.next_step)


def examine(patient: Patient) -> list[Check]:
    """Make every check that needs an account that answers; a question refused is UNKNOWN."""
    checks = []
    for name, ask in CHECKS.items():
        try:
            checks += [Check(name, *answer) for answer in ask(patient)]
        except (ClientError, BotoCoreError) as error:
            checks.append(refused(name, explained(error, f"checking the {name}")))
        except LabError as error:
            checks.append(refused(name, error))
    return checks


Answers = Iterator[tuple[Health, str] | tuple[Health, str, str]]


def _identity(patient: Patient) -> Answers:
    found = f"account {patient.account.account}"
    if patient.account.target == "aws":
        found += f" as {patient.account.client('sts').get_caller_identity()['Arn']}"
    yield Health.OK, found


def _region(patient: Patient) -> Answers:
    graded = "AWS's own endpoint" if patient.account.grade == "aws" else "not AWS's own endpoint: emulated"
    yield Health.OK, f"{patient.account.region}, {graded}"


def _bootstrap(patient: Patient) -> Answers:
    if patient.account.target == "local":
        yield Health.OK, "not needed: the runner does its part on the local cloud"
        return
    client, fix = patient.account.client("ssm"), "run `cdk bootstrap` for this account and region"
    try:
        version = client.get_parameter(Name=BOOTSTRAP)["Parameter"]["Value"]
    except client.exceptions.ParameterNotFound:
        yield Health.PROBLEM, f"no parameter {BOOTSTRAP}", fix
        return
    enough = version.isdigit() and int(version) >= BOOTSTRAP_NEEDED
    needed = f"version {version}, {BOOTSTRAP_NEEDED} needed"
    yield (Health.OK, needed) if enough else (Health.PROBLEM, needed, fix)


def _cdk(_patient: Patient) -> Answers:
    """Only a note: the tool is needed to deploy to AWS, never to run."""
    command = [tool] if (tool := shutil.which("cdk")) else None
    if command is None:
        npx = "; npx could fetch it" if shutil.which("npx") else ""
        yield Health.OK, f"no cdk on the PATH{npx}: needed only to deploy to AWS (npm install -g aws-cdk)"
        return
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=TOOL_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Health.OK, f"cdk is on the PATH and did not say its version: {error}"
        return
    yield Health.OK, f"cdk {done.stdout.strip() or done.stderr.strip()[:100]}"


def _concurrency(patient: Patient) -> Answers:
    limit = patient.account.client("lambda").get_account_settings()["AccountLimit"]
    free = limit["UnreservedConcurrentExecutions"]
    found = f"{free} unreserved of {limit['ConcurrentExecutions']}, {CONCURRENCY_NEEDED} needed"
    if free >= CONCURRENCY_NEEDED:
        yield Health.OK, found
        return
    fix = "ask Service Quotas for more Lambda concurrent executions, or run with --sequential"
    yield Health.PROBLEM, found, fix


def _table_capacity(patient: Patient) -> Answers:
    limits = patient.account.client("dynamodb").describe_limits()
    yield Health.OK, f"{limits['TableMaxWriteCapacityUnits']} write units for each on-demand table"


def _stack(patient: Patient) -> Answers:
    """The stack's state, its template against the synthesised one, and its source queues."""
    account = patient.account
    described = described_stack(account.client, account.stack)
    if described is None:
        if account.target == "local":
            yield Health.OK, f"{account.stack} is not there; `run` deploys it"
            return
        context = "" if patient.protocol.name == "study-1" else f" -c protocol={patient.protocol.name}"
        missing = f"no stack {account.stack} in {account.region} of account {account.account}"
        yield Health.PROBLEM, missing, f"run `cdk deploy{context}`, or set AWS_REGION to where it is"
        return
    status = described["StackStatus"]
    if status not in AT_REST:
        yield Health.PROBLEM, f"{account.stack} is {status}", after_status(status)
        return
    yield Health.OK, f"{account.stack} is {status}"
    body = account.client("cloudformation").get_template(StackName=account.stack)["TemplateBody"]
    ours = json.loads((patient.assembly / f"{account.stack}.template.json").read_text())
    if found := differences(body, ours):
        more = f"{len(found)} differences from this code's template, first: {found[0]}"
        yield Health.PROBLEM, more, "deploy this code, or check out the commit that was deployed"
    else:
        yield Health.OK, "the deployed template is this code's"
    yield from _queues(patient, outputs_of(described))


def _queues(patient: Patient, outputs: dict[str, str]) -> Answers:
    counts = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
    left = 0
    for url in (outputs[key] for key in SOURCES if key in outputs):
        found = patient.account.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=counts)
        left += sum(int(found["Attributes"].get(count, 0)) for count in counts)
    if left:
        yield Health.PROBLEM, f"{left} messages in the source queues", "wait until the other run has ended"
    else:
        yield Health.OK, "the source queues are empty"


def _ceiling(patient: Patient) -> Answers:
    """What each stage may add to what the study has cost so far, counted as `stage` itself counts it."""
    protocol = patient.protocol
    limit = f"the ceiling of the study is {cost.usd(protocol.cost.ceiling_usd_cents * cost.MICRO_PER_CENT)}"
    for name in STAGES:
        cells = stage(name, protocol).cells
        found = cost.room(protocol, cells, patient.runs)
        spent, may_add = (cost.usd(found[key]) for key in ("spent_micro_usd", "may_add_micro_usd"))
        told = f"stage {name} may add {may_add} to {spent} estimated so far; {limit}"
        try:
            cost.demand_within(found, protocol)
        except UsageError as error:
            yield Health.PROBLEM, told, error.next_step
        else:
            yield Health.OK, told


CHECKS: dict[str, Callable[[Patient], Answers]] = {
    "credentials": _identity,
    "region": _region,
    "bootstrap": _bootstrap,
    "cdk": _cdk,
    "lambda concurrency": _concurrency,
    "table capacity": _table_capacity,
    "stack": _stack,
    "cost ceiling": _ceiling,
}
