"""Shapes shared by the constructs: a table, a FIFO pair, a function, and one line of a policy.

Roles are written by hand, as lists of `allow(...)`: CDK's grants are wider than what a handler
does, and a reviewer should read in one place all that a function may touch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

# A full vCPU comes at 1769 MB; this much keeps a cold start well inside the 3 s deadline,
# so that CONTROL does not time out for a reason the protocol does not study.
MEMORY_MB = 1024

LOG_RETENTION = logs.RetentionDays.TWO_WEEKS

# Dead letters are evidence: they outlive the source queue's default of four days.
DEAD_LETTER_RETENTION = Duration.days(14)


@dataclass(frozen=True)
class Runtime:
    """What every function of the stack runs: the same code, the same layer."""

    code: lambda_.Code
    layer: lambda_.ILayerVersion


@dataclass(frozen=True)
class FifoPair:
    """A FIFO queue and where a delivery goes after `max_receive_count` receives."""

    queue: sqs.Queue
    dlq: sqs.Queue


@dataclass(frozen=True)
class LabFunction:
    """A function, the log group that it alone writes to, and the role that says what else it may."""

    function: lambda_.Function
    log_group: logs.LogGroup
    role: iam.Role


def allow(*actions: str, on: str) -> iam.PolicyStatement:
    """Return the statement that allows `actions` on one ARN."""
    return iam.PolicyStatement(actions=list(actions), resources=[on])


def lab_table(
    scope: Construct, id: str, *, sort_key: str | None = None, stream: dynamodb.StreamViewType | None = None
) -> dynamodb.Table:
    """Build an on-demand table keyed by trial; it goes away with the stack."""
    table = dynamodb.Table(
        scope,
        id,
        partition_key=_string_key("trial_id"),
        sort_key=_string_key(sort_key) if sort_key else None,
        stream=stream,
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        removal_policy=RemovalPolicy.DESTROY,
    )
    acknowledge(
        table,
        "AwsSolutions-DDB3",
        "A trial's rows are frozen into a package right after it; the table lives as long as the lab.",
    )
    return table


def _string_key(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def lab_queue(scope: Construct, id: str, **properties: object) -> sqs.Queue:
    """Build a queue that refuses plain HTTP and goes away with the stack."""
    return sqs.Queue(
        scope,
        id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        removal_policy=RemovalPolicy.DESTROY,
        **properties,
    )


def fifo_pair(scope: Construct, *, visibility_timeout_s: int, max_receive_count: int) -> FifoPair:
    """Build a FIFO queue and its FIFO dead-letter queue."""
    dlq = lab_queue(scope, "Dlq", fifo=True, retention_period=DEAD_LETTER_RETENTION)
    queue = lab_queue(
        scope,
        "Queue",
        fifo=True,
        visibility_timeout=Duration.seconds(visibility_timeout_s),
        dead_letter_queue=sqs.DeadLetterQueue(queue=dlq, max_receive_count=max_receive_count),
    )
    return FifoPair(queue=queue, dlq=dlq)


def lab_function(
    scope: Construct,
    *,
    name: str,
    handler: str,
    timeout_s: int,
    runtime: Runtime,
    environment: Mapping[str, str],
    access: Sequence[iam.PolicyStatement],
    durable: lambda_.DurableConfig | None = None,
) -> LabFunction:
    """Build a function whose role holds `access` and the right to write to its own log group.

    `name` goes into the log group's name and every log line. The function itself stays unnamed:
    adding or removing a durable configuration replaces it, and a fixed name would block that.
    """
    log_group = logs.LogGroup(
        scope,
        "LogGroup",
        # Named, so that every resource of this stack is found by the prefix `<stack>-`.
        log_group_name=f"{Stack.of(scope).stack_name}-{name}",
        retention=LOG_RETENTION,
        removal_policy=RemovalPolicy.DESTROY,
    )
    # No logs:CreateLogGroup: a late log line must not bring a deleted group back (CASES D29).
    write_logs = allow("logs:CreateLogStream", "logs:PutLogEvents", on=log_group.log_group_arn)
    role = iam.Role(
        scope,
        "Role",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        inline_policies={"access": iam.PolicyDocument(statements=[write_logs, *access])},
    )
    function = lambda_.Function(
        scope,
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_13,
        architecture=lambda_.Architecture.ARM_64,
        handler=handler,
        code=runtime.code,
        layers=[runtime.layer],
        # What the role may do is written above; CDK adds nothing to it.
        role=role.without_policy_updates(),
        log_group=log_group,
        memory_size=MEMORY_MB,
        timeout=Duration.seconds(timeout_s),
        environment={**environment, "POWERTOOLS_SERVICE_NAME": name},
        durable_config=durable,
        # Executions are pinned to the version they began on, so an update must not delete it.
        # Nothing stays behind: versions go when the function goes.
        current_version_options=lambda_.VersionOptions(removal_policy=RemovalPolicy.RETAIN),
    )
    acknowledge(
        function, "AwsSolutions-L1", "Python 3.13 is the protocol's runtime; a newer one is another result."
    )
    return LabFunction(function=function, log_group=log_group, role=role)


def acknowledge(construct: Construct, rule: str, reason: str) -> None:
    """Record why a cdk-nag rule does not apply to this construct."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
