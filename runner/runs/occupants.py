"""Which runs a local cloud would take with it: asked before `local down` ends it.

The lease of each stack names the run that works on it; the lock of that run's folder says whether its
process lives. A cloud that does not answer is taken to hold every local run that lives.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from runner import protocol as protocols
from runner.errors import LabError
from runner.local.cloud import Cloud
from runner.names import Output, stack_name
from runner.runs import state
from runner.runs.lease import holder
from runner.targets.target import described_stack, outputs_of

ANSWER_LIMIT_S = 10


@dataclass
class Occupants:
    """Runs that go on, each with how that is known, and runs that died and can still be resumed."""

    going_on: dict[str, str]
    died: list[str]


def occupants(cloud: Cloud, runs: Path, now_ms: int) -> Occupants:
    """Return the runs on this cloud. `runs` is where their folders are kept."""
    found = Occupants({}, [])
    try:
        holders = _holders(cloud)
    except (ClientError, BotoCoreError):
        folders = [log.parent for log in sorted(runs.glob("*/state.jsonl"))]
        living = [folder.name for folder in folders if state.lives(folder) and _is_local(folder)]
        return Occupants(dict.fromkeys(living, "its process lives, and the cloud does not answer"), [])
    for run_id, until_ms in holders:
        folder = runs / run_id
        if state.lives(folder):
            found.going_on[run_id] = "its process lives"
        elif not (folder / "state.jsonl").is_file():
            if until_ms >= now_ms:
                left_s = (until_ms - now_ms) // 1000
                found.going_on[run_id] = f"its lease has {left_s} s left; its folder is not under {runs}"
        elif not state.ended(_entries(folder)):
            found.died.append(run_id)
    return found


def _holders(cloud: Cloud) -> list[tuple[str, int]]:
    """Return (run, end of its lease in ms) of every stack of ours on the cloud."""

    def client(service: str):
        return cloud.client(service, read_timeout_s=ANSWER_LIMIT_S)

    found = []
    for name in protocols.available():
        described = described_stack(client, stack_name(name)) or {}
        if table := outputs_of(described).get(Output.JOURNAL_TABLE):
            found.append(holder(client("dynamodb"), table))
    return [held for held in found if held]


def _is_local(folder: Path) -> bool:
    return any(entry.get("target") == "local" for entry in _entries(folder)[:1])


def _entries(folder: Path) -> list[dict[str, Any]]:
    try:
        return state.read(folder)
    except LabError:
        return []  # damaged by other hands, which is no reason to keep the cloud
