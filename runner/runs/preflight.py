"""What must hold before a run may start on a stack."""

from runner.errors import LabError
from runner.names import VARIANTS, Output
from runner.protocol import Protocol
from runner.targets.target import Lab


def preflight(lab: Lab, protocol: Protocol) -> None:
    """Refuse to start on a stack of another protocol or with messages left in its source queues."""
    deployed = lab.outputs[Output.PROTOCOL_SHA256]
    if deployed != protocol.sha256:
        raise LabError(
            f"stack {lab.stack} was deployed from another protocol file",
            expected=f"{protocol.name} with SHA-256 {protocol.sha256}",
            found=f"{lab.outputs[Output.PROTOCOL_NAME]} with SHA-256 {deployed}",
            next_step="deploy again, so that stack and protocol agree",
        )
    for variant in VARIANTS:
        attributes = lab.client("sqs").get_queue_attributes(
            QueueUrl=lab.queue_url(variant), AttributeNames=["All"]
        )["Attributes"]
        waiting = int(attributes.get("ApproximateNumberOfMessages", 0))
        in_flight = int(attributes.get("ApproximateNumberOfMessagesNotVisible", 0))
        if waiting or in_flight:
            raise LabError(
                f"the {variant} queue is not at rest, so a trial could meet another one's message",
                expected="no message waiting or in flight",
                found=f"{waiting} waiting, {in_flight} in flight",
                next_step="wait until the other run has ended, then run again",
            )
