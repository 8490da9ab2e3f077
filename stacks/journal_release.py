"""The journal, and the release controller that its stream drives.

The controller sees one kind of record only: an inserted `caller_timeout_recorded`. So a response
can be released by nothing but the timeout that the caller wrote down.
"""

import json

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from runner.protocol import Protocol
from stacks.shapes import (
    DEAD_LETTER_RETENTION,
    Runtime,
    acknowledge,
    allow,
    lab_function,
    lab_queue,
    lab_table,
)

RELEASING_RECORD = {
    "eventName": ["INSERT"],
    "dynamodb": {"NewImage": {"type": {"S": ["caller_timeout_recorded"]}}},
}


class Journal(Construct):
    """The append-only journal of every trial."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.table = lab_table(self, "Table", sort_key="entry", stream=dynamodb.StreamViewType.NEW_IMAGE)

    def append_access(self) -> iam.PolicyStatement:
        """Return what one append needs: read the counter, raise it, put the event."""
        return allow("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", on=self.table.table_arn)


class ReleaseController(Construct):
    """Signals the barrier after a recorded timeout; can neither call the provider nor see the ledger."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        protocol: Protocol,
        runtime: Runtime,
        journal: Journal,
        barrier: dynamodb.ITable,
    ) -> None:
        super().__init__(scope, id)
        # Where a record goes that the bounded retries could not deliver: a lost release is visible.
        self.failures = lab_queue(self, "Failures", retention_period=DEAD_LETTER_RETENTION)
        acknowledge(
            self.failures,
            "AwsSolutions-SQS3",
            "It is itself where failures end; nothing consumes it, so it needs no dead-letter queue.",
        )
        built = lab_function(
            self,
            name="release",
            handler="lambdas.release.handler.handler",
            timeout_s=protocol.release.function_timeout_s,
            runtime=runtime,
            environment={
                "SUC_JOURNAL_TABLE": journal.table.table_name,
                "SUC_BARRIER_TABLE": barrier.table_name,
                "SUC_DEADLINE_MS": str(protocol.caller.deadline_ms),
            },
            access=[
                allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=barrier.table_arn),
                journal.append_access(),
                allow(
                    "dynamodb:DescribeStream",
                    "dynamodb:GetRecords",
                    "dynamodb:GetShardIterator",
                    "dynamodb:ListStreams",
                    on=journal.table.table_stream_arn,
                ),
                allow("sqs:SendMessage", on=self.failures.queue_arn),
            ],
        )
        self.function, self.log_group = built.function, built.log_group
        self._add_stream_mapping(journal, protocol.release.max_retries)

    def _add_stream_mapping(self, journal: Journal, max_retries: int) -> None:
        lambda_.CfnEventSourceMapping(
            self,
            "StreamMapping",
            event_source_arn=journal.table.table_stream_arn,
            function_name=self.function.function_name,
            # From the oldest record: LATEST may skip what is written while the mapping starts.
            starting_position="TRIM_HORIZON",
            batch_size=1,
            maximum_retry_attempts=max_retries,
            filter_criteria={"filters": [{"pattern": json.dumps(RELEASING_RECORD)}]},
            destination_config={"onFailure": {"destination": self.failures.queue_arn}},
        )
