"""The variants: a FIFO pair, a caller and a mapping each. What differs is who owns the retry.

Both callers hold the same grants: append to the journal and invoke the provider. Neither can see
the ledger or the barrier.
"""

from collections.abc import Mapping

from aws_cdk import Annotations, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from runner.names import CONVENTIONAL, DURABLE, DURABLE_ALIAS
from runner.protocol import Conventional, Durable, Protocol
from stacks.journal_release import Journal
from stacks.shapes import FifoPair, LabFunction, Runtime, acknowledge, allow, fifo_pair, lab_function


class Variant(Construct):
    """What every variant has: its own queue pair and a caller that can reach the provider."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        protocol: Protocol,
        runtime: Runtime,
        journal: Journal,
        provider: lambda_.IFunction,
    ) -> None:
        super().__init__(scope, id)
        self._protocol, self._runtime = protocol, runtime
        self._journal, self._provider = journal, provider

    def _build_pair(self, limits: Conventional | Durable) -> FifoPair:
        return fifo_pair(
            self,
            visibility_timeout_s=limits.visibility_timeout_s,
            max_receive_count=limits.max_receive_count,
        )

    def _build_caller(
        self,
        name: str,
        pair: FifoPair,
        *,
        extra_environment: Mapping[str, str] | None = None,
        durable: lambda_.DurableConfig | None = None,
    ) -> LabFunction:
        return lab_function(
            self,
            name=name,
            handler=f"lambdas.caller.{name}.handler",
            timeout_s=self._protocol.caller.function_timeout_s,
            runtime=self._runtime,
            environment={
                "SUC_JOURNAL_TABLE": self._journal.table.table_name,
                "SUC_PROVIDER_FUNCTION": self._provider.function_name,
                "SUC_DEADLINE_MS": str(self._protocol.caller.deadline_ms),
                **(extra_environment or {}),
            },
            access=[
                self._journal.append_access(),
                allow("lambda:InvokeFunction", on=self._provider.function_arn),
                # What the mapping needs. No sqs:ChangeMessageVisibility: the queue's own timeout
                # is the retry delay under study, and nobody may shorten it.
                allow(
                    "sqs:ReceiveMessage",
                    "sqs:DeleteMessage",
                    "sqs:GetQueueAttributes",
                    on=pair.queue.queue_arn,
                ),
            ],
            durable=durable,
        )

    def _add_mapping(self, pair: FifoPair, target: str, batch_size: int) -> lambda_.CfnEventSourceMapping:
        return lambda_.CfnEventSourceMapping(
            self,
            "Mapping",
            event_source_arn=pair.queue.queue_arn,
            function_name=target,
            batch_size=batch_size,
        )


class ConventionalVariant(Variant):
    """Lambda + SQS FIFO: on a timeout the handler raises and the queue delivers again."""

    def __init__(self, scope: Construct, id: str, **parts: object) -> None:
        super().__init__(scope, id, **parts)
        limits = self._protocol.conventional
        self.pair = self._build_pair(limits)
        built = self._build_caller(CONVENTIONAL, self.pair)
        self.function, self.log_group = built.function, built.log_group
        self._add_mapping(self.pair, self.function.function_name, limits.batch_size)


class DurableVariant(Variant):
    """Lambda Durable Functions: one step, whose own strategy retries inside the execution."""

    def __init__(self, scope: Construct, id: str, **parts: object) -> None:
        super().__init__(scope, id, **parts)
        limits = self._protocol.durable
        self.pair = self._build_pair(limits)
        built = self._build_caller(
            DURABLE,
            self.pair,
            extra_environment={
                "SUC_STEP_NAME": limits.step_name,
                "SUC_STEP_ATTEMPTS": str(limits.step_attempts),
                "SUC_STEP_RETRY_DELAY_S": str(limits.step_retry_delay_s),
            },
            durable=lambda_.DurableConfig(
                execution_timeout=Duration.seconds(limits.execution_timeout_s),
                retention_period=Duration.days(limits.retention_days),
            ),
        )
        self.function, self.log_group = built.function, built.log_group
        Annotations.of(self.function).acknowledge_info(
            "aws-lambda:Function.DurableConfig",
            "The function is durable from its first deployment and has no fixed name, so it can be replaced.",
        )
        # A queue may start a durable function only through a version or an alias of one.
        self.alias = lambda_.Alias(
            self, "Alias", alias_name=DURABLE_ALIAS, version=self.function.current_version
        )
        mapping = self._add_mapping(self.pair, self.alias.function_arn, limits.batch_size)
        mapping.node.add_dependency(self._add_checkpoint_access(built.role))

    def _add_checkpoint_access(self, role: iam.Role) -> iam.Policy:
        """Let the function checkpoint its own executions.

        A policy beside the role, not in it: it names the function, which itself needs the role.
        """
        policy = iam.Policy(
            self,
            "CheckpointPolicy",
            roles=[role],
            statements=[
                allow(
                    "lambda:CheckpointDurableExecution",
                    "lambda:GetDurableExecutionState",
                    on=f"{self.function.function_arn}:*",
                )
            ],
        )
        function_id = Stack.of(self).get_logical_id(self.function.node.default_child)
        acknowledge(
            policy,
            f"AwsSolutions-IAM5[Resource::<{function_id}.Arn>:*]",
            "An execution belongs to a version, so the service checks NAME:VERSION; the number is not known "
            "before the function exists, hence the wildcard, on this one function.",
        )
        return policy
