"""Freezing a run into a package: a folder named by the SHA-256 of its index (evidence/FORMAT.md)."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.disk import sync_folder, write_through
from runner.doctor.ground import load_latest
from runner.places import PROJECT_ROOT
from runner.protocol import Protocol
from runner.records import Reads, canonical
from runner.targets.target import Lab
from runner.trials.trial import Trial

FORMAT, VERSION = "suc-evidence", 1


@dataclass(frozen=True)
class Package:
    """A published package: its folder and its identity (SHA-256 of index.json's bytes)."""

    path: Path
    id: str


class Freezer:
    """Gathers the files of a package and publishes them with one atomic rename."""

    def __init__(self, run_dir: Path):
        self._run_dir = run_dir
        self._files: dict[str, tuple[str, bytes]] = {}

    def add(self, path: str, role: str, data: bytes) -> None:
        """Add one file. A path may be added once."""
        if path in self._files:
            raise ValueError(f"{path} was already added to the package")
        self._files[path] = (role, data)

    def files(self) -> dict[str, bytes]:
        """Return what was added so far, by path."""
        return {path: data for path, (_, data) in self._files.items()}

    def add_trial(self, trial: Trial, protocol: Protocol, lab: Lab, roles: dict[str, Reads]) -> None:
        """Add a trial's own record and everything that was read about it."""
        folder = f"trials/{trial.trial_id}"
        self.add(f"{folder}/trial.json", "trial", canonical(trial.as_json(protocol, lab)))
        for role, reads in roles.items():
            self.add(f"{folder}/{role}.jsonl", role, reads.to_bytes())

    def publish(self, about_to_publish: Callable[[str], None] = lambda _identity: None) -> Package:
        """Write the files, then the index, flush them, and rename the folder to its identity."""
        index = index_of(self._files)
        partial = self._run_dir / ".partial"
        shutil.rmtree(partial, ignore_errors=True)
        for path, (_, data) in self._files.items():
            write_through(partial / path, data)
        write_through(partial / "index.json", index)
        identity = hashlib.sha256(index).hexdigest()
        final = self._run_dir / identity
        about_to_publish(identity)
        partial.rename(final)
        sync_folder(self._run_dir)
        return Package(final, identity)


def index_of(files: Mapping[str, tuple[str, bytes]]) -> bytes:
    """Return index.json's bytes for a package's files, given as (role, bytes) by path."""
    return canonical({"format": FORMAT, "version": VERSION, "files": listed(files)})


def listed(files: Mapping[str, tuple[str, bytes]]) -> list[dict[str, Any]]:
    """Return the entries of an index for files given as (role, bytes) by path."""
    return [
        {"path": path, "role": role, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        for path, (role, data) in sorted(files.items())
    ]


def find_package(run_dir: Path) -> Package | None:
    """Return the package that a run has published: the folder named by its index's SHA-256, or None."""
    for index in sorted(run_dir.glob("*/index.json")):
        if hashlib.sha256(index.read_bytes()).hexdigest() == index.parent.name:
            return Package(index.parent, index.parent.name)
    return None


def environment(lab: Lab, functions: dict[str, Any], template: dict[str, Any], started_at_ms: int) -> dict:
    """Return environment.json's object: target, grade, code identity and versions."""
    return {
        "target": lab.target,
        "grade": lab.grade,
        "region": lab.region,
        "account": lab.account,
        "started_at_ms": started_at_ms,
        "code": code_identity(),
        "assets": assets(template),
        "versions": lab.cloud_versions,
        "functions": functions,
        # How far the ground of this target was seen to hold, or null: nobody has looked.
        "ground": load_latest(lab.target, lab.account, lab.region, lab.cloud_versions),
        "stack": {"name": lab.stack, "status": lab.stack_status, "outputs": lab.outputs},
    }


def assets(template: dict[str, Any]) -> list[dict[str, str]]:
    """Return the digest of each deployed code or layer asset, read from its S3 key."""
    found = []
    for logical_id, resource in sorted(template.get("Resources", {}).items()):
        properties = resource.get("Properties", {})
        for key in ("Code", "Content"):
            s3_key = properties.get(key, {}).get("S3Key") if isinstance(properties.get(key), dict) else None
            if isinstance(s3_key, str):
                found.append({"logical_id": logical_id, "sha256": Path(s3_key).stem})
    return found


def code_identity() -> dict[str, Any]:
    """Return the git commit and whether the tree differs from it; nulls without git."""
    try:
        commit = _git("rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(PROJECT_ROOT), *arguments], capture_output=True, text=True, timeout=10, check=True
    )
    return done.stdout.strip()


def template_body(client: Callable[[str], Any], stack: str) -> dict[str, Any]:
    """Return the deployed template as CloudFormation gives it."""
    body = client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    return json.loads(body) if isinstance(body, str) else json.loads(json.dumps(body))
