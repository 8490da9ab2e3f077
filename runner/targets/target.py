"""Where a run happens: the local cloud or an AWS account, chosen once and announced.

Without `--target` it is `aws` when any AWS credentials resolve, else `local`. There is no silent
fall-back from one to the other after an error.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlparse

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from runner.errors import UsageError
from runner.names import CONVENTIONAL, DURABLE_ALIAS, GRADES, Output
from runner.targets.aws_errors import telling

# Longer than any function of the lab may run, so the driver never gives up on a call that is
# still at work and never repeats one (CASES D15).
READ_TIMEOUT_S = 960

AT_REST = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE")


@dataclass(frozen=True)
class Lab:
    """A deployed stack on a target: its outputs and the clients to reach it.

    `client(service)` returns one shared client per service, with explicit timeouts and one
    request on the wire.
    """

    target: str
    grade: str
    region: str
    account: str
    stack: str
    stack_status: str
    outputs: dict[str, str]
    client: Callable[[str], Any] = field(repr=False)
    cloud_versions: dict[str, str] = field(default_factory=dict)
    # Unique to one creation of the stack: a later stack of the same name has another one.
    stack_id: str = ""

    @property
    def ledger_table(self) -> str:
        """Name of the provider's ledger table."""
        return self.outputs[Output.LEDGER_TABLE]

    @property
    def journal_table(self) -> str:
        """Name of the journal table."""
        return self.outputs[Output.JOURNAL_TABLE]

    @property
    def barrier_table(self) -> str:
        """Name of the barrier table."""
        return self.outputs[Output.BARRIER_TABLE]

    def queue_url(self, variant: str) -> str:
        """Return the variant's source queue."""
        key = Output.CONVENTIONAL_QUEUE_URL if variant == CONVENTIONAL else Output.DURABLE_QUEUE_URL
        return self.outputs[key]

    def dlq_url(self, variant: str) -> str:
        """Return the variant's dead-letter queue."""
        key = Output.CONVENTIONAL_DLQ_URL if variant == CONVENTIONAL else Output.DURABLE_DLQ_URL
        return self.outputs[key]

    def functions(self) -> dict[str, dict[str, str]]:
        """Return what to invoke for each function: name and, for the durable caller, the alias."""
        return {
            "provider": {"FunctionName": self.outputs[Output.PROVIDER_FUNCTION]},
            "release": {"FunctionName": self.outputs[Output.RELEASE_FUNCTION]},
            "conventional": {"FunctionName": self.outputs[Output.CONVENTIONAL_FUNCTION]},
            "durable": {
                "FunctionName": self.outputs[Output.DURABLE_FUNCTION],
                "Qualifier": DURABLE_ALIAS,
            },
        }

    def log_groups(self) -> dict[str, str]:
        """Return the log group of each function."""
        return {
            "provider": self.outputs[Output.PROVIDER_LOG_GROUP],
            "release": self.outputs[Output.RELEASE_LOG_GROUP],
            "conventional": self.outputs[Output.CONVENTIONAL_LOG_GROUP],
            "durable": self.outputs[Output.DURABLE_LOG_GROUP],
        }


def choose(asked: str | None) -> tuple[str, str]:
    """Return (target, announcement). `asked` is the value of --target, or None."""
    if asked == "aws":
        return "aws", "target: aws (as asked)"
    if asked == "local":
        return "local", "target: local, emulated (as asked)"
    if _credentials_resolve():
        return "aws", "target: aws (AWS credentials were found; --target local for the local cloud)"
    return "local", "target: local, emulated (no AWS credentials were found)"


def _credentials_resolve() -> bool:
    try:
        return boto3.Session().get_credentials() is not None
    except BotoCoreError:
        # A half-written profile is still the user's wish to use AWS: let the aws target say
        # what is wrong with it rather than run somewhere else.
        return True


def aws_clients() -> Callable[[str], Any]:
    """Return a client factory for the credentials that resolve; one client per service.

    One request on the wire per call for Lambda (a repeat would be a second invocation,
    CASES D15) and SQS; reads and journal writes may be repeated, being idempotent.
    """
    session = boto3.Session()
    made: dict[tuple[str, int | None], Any] = {}
    # Clients may be shared by the threads of two trials; making one may not.
    making = threading.Lock()

    def client(service: str, *, read_timeout_s: int | None = None) -> Any:
        key = service, read_timeout_s
        with making:
            if key not in made:
                attempts = 1 if service in ("lambda", "sqs") else 4
                made[key] = session.client(
                    service,
                    config=Config(
                        connect_timeout=5,
                        read_timeout=read_timeout_s or (READ_TIMEOUT_S if service == "lambda" else 20),
                        retries={"mode": "standard", "total_max_attempts": attempts},
                    ),
                )
            return made[key]

    return client


def find_on_aws(stack: str, protocol_name: str) -> Lab:
    """Find the stack that `cdk deploy` made. Never deploys.

    Raises UsageError when it is not there (naming `cdk deploy` and `--target local`), LabError
    when AWS cannot be asked.
    """
    context = "" if protocol_name == "study-1" else f" -c protocol={protocol_name}"
    with telling(f"looking for the stack {stack}"):
        client = aws_clients()
        # Before STS, which answers without a region.
        region = client("cloudformation").meta.region_name
        account = client("sts").get_caller_identity()["Account"]
        described = described_stack(client, stack)
    if described is None:
        raise UsageError(
            f"stack {stack} is not deployed in {region} of account {account}",
            expected="the stack that cdk deploy makes, in the region that AWS_REGION names",
            found="no such stack there",
            next_step=f"run `cdk deploy{context}`, set AWS_REGION to where it is, or use --target local",
        )
    return lab_from_stack("aws", described, client, account)


def described_stack(client: Callable[[str], Any], stack: str) -> dict[str, Any] | None:
    """Return DescribeStacks' answer, or None when CloudFormation knows no such stack."""
    try:
        return client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    except ClientError as error:
        details = error.response.get("Error", {})
        if details.get("Code") == "ValidationError" and "does not exist" in details.get("Message", ""):
            return None
        raise


def outputs_of(described: dict[str, Any]) -> dict[str, str]:
    """Return a described stack's outputs by key; none while it is being made."""
    return {o["OutputKey"]: o["OutputValue"] for o in described.get("Outputs", [])}


def after_status(status: str) -> str:
    """Return what to do about a stack that is not at rest."""
    if status.endswith("_IN_PROGRESS"):
        return "wait until CloudFormation has ended it, then run again"
    if status in ("UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"):
        return "its last update was taken back: read the stack's events, then `cdk deploy` again"
    return "it cannot be updated: take it away with `python -m runner cleanup`, then deploy it again"


def lab_from_stack(
    target: str,
    described: dict[str, Any],
    client: Callable[[str], Any],
    account: str,
    cloud_versions: dict[str, str] | None = None,
) -> Lab:
    """Build a Lab from DescribeStacks' answer.

    Raises UsageError for a stack that is not at rest or lacks an output the runner needs.
    """
    status, name = described["StackStatus"], described["StackName"]
    if status not in AT_REST:
        raise UsageError(
            f"stack {name} cannot be used",
            expected="CREATE_COMPLETE or UPDATE_COMPLETE",
            found=f"{status} {described.get('StackStatusReason', '')}".strip(),
            next_step=after_status(status),
        )
    outputs = outputs_of(described)
    missing = [key for key in Output.all() if key not in outputs]
    if missing:
        raise UsageError(
            f"stack {name} lacks outputs the runner needs",
            expected=", ".join(missing),
            found=", ".join(sorted(outputs)) or "no outputs",
            next_step="deploy the stack of this version of the lab",
        )
    cloudformation = client("cloudformation")
    return Lab(
        target=target,
        grade=grade(target, cloudformation.meta.endpoint_url),
        region=cloudformation.meta.region_name,
        account=account,
        stack=name,
        stack_status=status,
        outputs=outputs,
        client=client,
        cloud_versions=cloud_versions or {},
        stack_id=described.get("StackId", ""),
    )


def grade(target: str, endpoint: str) -> str:
    """An endpoint that is not AWS's own is never graded aws, whatever the target is called."""
    host = urlparse(endpoint).hostname or ""
    real = host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
    return GRADES[target] if real else GRADES["local"]
