"""The bytes of a package in the tests: canonical JSON, typed items, read records, the index over all of it.

Written from evidence/FORMAT.md only. A package is a dict of documents (`docs`), so a test changes one thing
and renders again.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

from tests.oracle import template
from tests.oracle.protocols import REHEARSAL_TOML

SQS = "https://sqs.us-east-1.amazonaws.com/000000000000/"
OUTPUTS = {
    "LedgerTable": "ledger",
    "JournalTable": "journal",
    "BarrierTable": "barrier",
    "ProviderFunction": "provider",
    "ReleaseFunction": "release",
    "ConventionalFunction": "conventional",
    "DurableFunction": "durable",
    "DurableAlias": "live",
    "ConventionalQueueUrl": SQS + "conventional.fifo",
    "ConventionalDlqUrl": SQS + "conventional-dlq.fifo",
    "DurableQueueUrl": SQS + "durable.fifo",
    "DurableDlqUrl": SQS + "durable-dlq.fifo",
}
CONTROL, TREATMENT = "CONTROL", "COMMIT_THEN_TIMEOUT"
ROLES = {
    "protocol.toml": "protocol_source",
    "protocol.json": "protocol",
    "environment.json": "environment",
    "template.json": "template",
    "run.json": "run",
}
START_MS = 1_790_000_000_000


def canonical(value) -> bytes:
    """The one byte form of a JSON value that FORMAT.md allows, without the final newline."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def typed(value):
    """A Python value in DynamoDB's low-level form."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    if isinstance(value, dict):
        return {"M": {key: typed(inner) for key, inner in value.items()}}
    return {"S": value}


def item(**attributes):
    return {name: typed(value) for name, value in attributes.items() if value is not None}


def record(
    read, service, operation, request, response, *, of="", page=1, at_ms=0, marker_in=None, marker_out=None
):
    return {
        "read": read,
        "service": service,
        "operation": operation,
        "page": page,
        "of": of,
        "at_ms": at_ms,
        "request": request,
        "response": response,
        "marker_in": marker_in,
        "marker_out": marker_out,
    }


class Package:
    """Documents by path: bytes stay bytes, a list becomes .jsonl, anything else canonical JSON."""

    def __init__(self, protocol_toml: str = REHEARSAL_TOML):
        source = protocol_toml.encode()
        self.protocol = tomllib.loads(protocol_toml)
        name, digest = self.protocol["study"]["name"], hashlib.sha256(source).hexdigest()
        self.outputs = {**OUTPUTS, "ProtocolName": name, "ProtocolSha256": digest}
        self.docs: dict[str, object] = {
            "protocol.toml": source,
            "protocol.json": self.protocol,
            "environment.json": environment(self.outputs, self.protocol),
            "template.json": template.deployed(self.protocol, name, digest),
            "run.json": {
                "run_id": "run-1",
                "protocol": name,
                "protocol_sha256": digest,
                "target": "local",
                "grade": "emulated",
                "stage": "run",
                "sequential": False,
                "scenarios": [],
                "probe": "probe-1",
                "started_at_ms": START_MS,
                "ended_at_ms": START_MS + 60_000,
                "trials": [],
            },
        }

    def add(self, trial) -> Package:
        run, trial_id = self.docs["run.json"], trial.trial_id
        if trial.kind == "trial":
            run["trials"].append({"trial_id": trial_id, "scenario": trial.scenario, "variant": trial.variant})
            run["scenarios"] = sorted({t["scenario"] for t in run["trials"]})
        for name, document in trial.documents().items():
            self.docs[f"trials/{trial_id}/{name}"] = document
        return self

    def render(self) -> dict[str, bytes]:
        """Every file of the package, index.json last."""
        files = {path: encode(document) for path, document in self.docs.items()}
        files["index.json"] = encode(index_of(files))
        return files

    def write(self, parent: Path) -> Path:
        return write(self.render(), parent)


def encode(document) -> bytes:
    if isinstance(document, bytes):
        return document
    if isinstance(document, list):
        return b"".join(canonical(line) + b"\n" for line in document)
    return canonical(document) + b"\n"


def role_of(path: str) -> str:
    return ROLES.get(path) or path.rsplit("/", 1)[-1].split(".")[0]


def index_of(files: dict[str, bytes]) -> dict:
    return {
        "format": "suc-evidence",
        "version": 1,
        "files": [
            {
                "path": path,
                "role": role_of(path),
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
            for path, data in sorted(files.items())
            if path != "index.json"
        ],
    }


def reindex(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same files under a fresh index: damage that integrity cannot see."""
    kept = {path: data for path, data in files.items() if path != "index.json"}
    return {**kept, "index.json": encode(index_of(kept))}


def write(files: dict[str, bytes], parent: Path) -> Path:
    root = Path(parent) / hashlib.sha256(files["index.json"]).hexdigest()
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return root


def environment(outputs, protocol):
    client = {
        "retries": {"mode": "standard", "total_max_attempts": protocol["caller"]["total_max_attempts"]},
        "connect_timeout": 1,
        "read_timeout": 4,
    }
    pong = {
        "pong": True,
        "python": "3.13.0",
        "botocore": "1.44.8",
        "boto3": "1.44.8",
        "durable_sdk": "3.0.0",
        "powertools": "3.37.0",
        "sdk_config": {"lambda": client, "dynamodb": client},
    }
    return {
        "target": "local",
        "grade": "emulated",
        "region": "us-east-1",
        "account": "000000000000",
        "started_at_ms": START_MS,
        "code": {"commit": None, "dirty": None},
        "assets": [],
        "versions": {"botocore": "1.44.8", "boto3": "1.44.8"},
        "functions": {name: pong for name in ("conventional", "durable", "provider", "release")},
        "stack": {"name": "SucStudy1Rehearsal", "status": "CREATE_COMPLETE", "outputs": outputs},
    }
