"""Helpers of the end-to-end tests: call the command line, read packages the way a stranger would."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
REHEARSAL = "study-1-rehearsal"
# Ends a hang; a run takes a minute, and several times that on a slow machine under load.
RUN_LIMIT_S = 600


@dataclass(frozen=True)
class CommandLine:
    """Runs commands of the project without the caller's credentials; runs and state in `home`."""

    home: Path

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SUC_"))}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return {
            **kept,
            "SUC_RUNS_DIR": str(self.home / "runs"),
            "SUC_STATE_DIR": str(self.home / "state"),
            # No credentials may be found anywhere, or the target would be aws.
            "AWS_SHARED_CREDENTIALS_FILE": str(self.home / "no-credentials"),
            "AWS_CONFIG_FILE": str(self.home / "no-config"),
            "AWS_EC2_METADATA_DISABLED": "true",
            **more,
        }

    def call(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=PROJECT,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=RUN_LIMIT_S,
            check=False,
        )

    def run(self, *arguments: str, expected_exit: int = 0, **more: str) -> dict[str, Any]:
        """`runner run --json` on the local cloud under the rehearsal protocol; return the result.

        Repeated once, and only when a CONTROL timed out: then the machine was too slow, the
        trial is invalid by the protocol's own rule, and nothing was learnt about the lab.
        """
        command = ("runner", "run", "--protocol", REHEARSAL, "--target", "local", "--json", *arguments)
        for repeat in (False, True):
            done = self.call(*command, **more)
            result = json.loads(done.stdout) if done.stdout else {}
            if not repeat and _control_timed_out(result):
                print("a CONTROL timed out on this machine: the run is repeated once")
                continue
            break
        assert done.returncode == expected_exit, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return result


def _control_timed_out(result: dict[str, Any]) -> bool:
    return any(
        trial["scenario"] == "CONTROL"
        and trial["validity"] == "invalid"
        and trial["effect_knowledge"] == "UNKNOWN"
        for trial in result.get("trials", [])
    )


def package_of(result: dict[str, Any]) -> Path:
    return Path(result["package"]["path"])


def records(package: Path, trial_id: str, role: str) -> list[dict[str, Any]]:
    lines = (package / "trials" / trial_id / f"{role}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def events(package: Path, trial_id: str) -> list[dict[str, Any]]:
    """The journal's events in the order of their sequence numbers, values made plain."""
    items = [
        {key: _plain(value) for key, value in item.items()}
        for record in records(package, trial_id, "journal")
        if record["read"] == "journal"
        for item in record["response"]["Items"]
    ]
    return sorted((item for item in items if "seq" in item), key=lambda item: item["seq"])


def _plain(value: dict[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    if kind == "M":
        return {key: _plain(member) for key, member in inner.items()}
    return int(inner) if kind == "N" else inner


def first(found: list[dict[str, Any]], type: str, nth: int = 0) -> dict[str, Any]:
    return [event for event in found if event["type"] == type][nth]
