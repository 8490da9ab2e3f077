"""The lab: one stack per protocol, composed of the provider, the journal and the variants."""

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from runner.names import PROJECT, Output
from runner.protocol import Protocol
from stacks.handlers import Asset, Handlers
from stacks.journal_release import Journal, ReleaseController
from stacks.ledger_provider import LedgerProvider
from stacks.shapes import Runtime
from stacks.variant import ConventionalVariant, DurableVariant


class LabStack(cdk.Stack):
    """Everything that a study deploys, and the outputs by which the runner finds it."""

    def __init__(self, scope: Construct, id: str, *, protocol: Protocol, handlers: Handlers) -> None:
        super().__init__(
            scope, id, description=f"Serverless Under Constraints, {protocol.name}: {protocol.title}"
        )
        runtime = self._build_runtime(handlers)
        journal = Journal(self, "Journal")
        provider = LedgerProvider(self, "Provider", protocol=protocol, runtime=runtime, journal=journal)
        release = ReleaseController(
            self, "Release", protocol=protocol, runtime=runtime, journal=journal, barrier=provider.barrier
        )
        parts = {"protocol": protocol, "runtime": runtime, "journal": journal, "provider": provider.function}
        conventional = ConventionalVariant(self, "Conventional", **parts)
        durable = DurableVariant(self, "Durable", **parts)

        self._add_outputs(
            {
                Output.LEDGER_TABLE: provider.ledger.table_name,
                Output.JOURNAL_TABLE: journal.table.table_name,
                Output.BARRIER_TABLE: provider.barrier.table_name,
                Output.PROVIDER_FUNCTION: provider.function.function_name,
                Output.RELEASE_FUNCTION: release.function.function_name,
                Output.RELEASE_FAILURE_QUEUE_URL: release.failures.queue_url,
                Output.CONVENTIONAL_FUNCTION: conventional.function.function_name,
                Output.CONVENTIONAL_QUEUE_URL: conventional.pair.queue.queue_url,
                Output.CONVENTIONAL_DLQ_URL: conventional.pair.dlq.queue_url,
                Output.DURABLE_FUNCTION: durable.function.function_name,
                Output.DURABLE_ALIAS: durable.alias.alias_name,
                Output.DURABLE_QUEUE_URL: durable.pair.queue.queue_url,
                Output.DURABLE_DLQ_URL: durable.pair.dlq.queue_url,
                Output.PROVIDER_LOG_GROUP: provider.log_group.log_group_name,
                Output.RELEASE_LOG_GROUP: release.log_group.log_group_name,
                Output.CONVENTIONAL_LOG_GROUP: conventional.log_group.log_group_name,
                Output.DURABLE_LOG_GROUP: durable.log_group.log_group_name,
                Output.PROTOCOL_NAME: protocol.name,
                Output.PROTOCOL_SHA256: protocol.sha256,
            }
        )
        # The same in every run, so that cost reports can group by them.
        cdk.Tags.of(self).add("project", PROJECT)
        cdk.Tags.of(self).add("study", protocol.name)

    def _build_runtime(self, handlers: Handlers) -> Runtime:
        layer = lambda_.LayerVersion(
            self,
            "Dependencies",
            # Named, because CloudFormation would leave the stack's name out of a layer's.
            layer_version_name=f"{self.stack_name}-dependencies",
            code=_code(handlers.layer),
            compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
            compatible_architectures=[lambda_.Architecture.ARM_64],
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        return Runtime(code=_code(handlers.code), layer=layer)

    def _add_outputs(self, outputs: dict[str, str]) -> None:
        for key, value in outputs.items():
            cdk.CfnOutput(self, key, value=value)


def _code(asset: Asset) -> lambda_.Code:
    # The digest of the sources names the asset, whatever this machine's zip library does.
    return lambda_.Code.from_asset(
        str(asset.path), asset_hash=asset.sha256, asset_hash_type=cdk.AssetHashType.CUSTOM
    )
