"""From a protocol's name to a CDK app that holds exactly one stack."""

import aws_cdk as cdk

from runner.names import stack_name
from runner.protocol import ProtocolError, load
from stacks.archive import AssetError
from stacks.handlers import handlers
from stacks.lab_stack import LabStack

DEFAULT_PROTOCOL = "study-1"

# What a user can act on: a wrong protocol, or an environment that cannot be vendored.
Refusal = (ProtocolError, AssetError)

# Settings live here rather than in cdk.json, and win over what the CDK CLI passes, so that
# `cdk synth` and `python app.py` write the same template.
SETTINGS = {
    "aws:cdk:enable-path-metadata": False,
    "aws:cdk:enable-asset-metadata": False,
    "aws:cdk:version-reporting": False,
    "@aws-cdk/aws-iam:minimizePolicies": True,
    "@aws-cdk/aws-lambda:recognizeLayerVersion": True,
    "@aws-cdk/core:target-partitions": ["aws"],
}


def lab_app(
    protocol_name: str | None = None, outdir: str | None = None, *, validate: bool = False
) -> cdk.App:
    """Build the app of one protocol; without a name it is the context's (`-c protocol=NAME`).

    `validate` turns on CDK's own check of the template. It takes longer than all the rest of a
    synth (3 s of 5), so the tests run it and users do not wait for it.

    Raises one of `Refusal` before anything is written.
    """
    app = cdk.App(
        outdir=outdir,
        # No automatic synth at exit: after a refusal it would write an empty assembly.
        auto_synth=False,
        analytics_reporting=False,
        builtin_cloud_formation_validation=validate,
        post_cli_context=SETTINGS,
    )
    if protocol_name is None:
        protocol_name = app.node.try_get_context("protocol")
    protocol = load(DEFAULT_PROTOCOL if protocol_name is None else str(protocol_name))
    # No account or region: the CLI's environment decides at deploy time, so synth needs neither.
    LabStack(app, stack_name(protocol.name), protocol=protocol, handlers=handlers())
    return app
