"""What comes before and after the trials of a run: is the stack at rest, and what does the oracle say."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from runner.errors import LabError
from runner.names import VARIANTS, Output
from runner.protocol import Protocol
from runner.target import Lab

PROJECT_ROOT = Path(__file__).resolve().parent.parent
JUDGE_LIMIT_S = 300


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


def judge(package: Path) -> dict[str, Any]:
    """Ask the oracle, as any reader would: as a command, over the package's bytes alone.

    Raises LabError when it gives no verdict (its exit codes 0, 1 and 2 are verdicts).
    """
    done = subprocess.run(
        [sys.executable, "-m", "oracle", "judge", str(package), "--json"],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        timeout=JUDGE_LIMIT_S,
        check=False,
    )
    try:
        # Python itself ends with 1 when it cannot start the oracle: only a document is a verdict.
        verdict = json.loads(done.stdout)
    except ValueError:
        verdict = None
    if done.returncode not in (0, 1, 2) or verdict is None:
        raise LabError(
            "the oracle gave no verdict",
            expected="a verdict and exit code 0, 1 or 2",
            found=f"{done.returncode}: {done.stderr.strip()[-1000:]}",
            next_step=f"run `python -m oracle judge {package}`",
        )
    return verdict
