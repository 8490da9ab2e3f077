"""Freezing what is learnt after a package was published: an addendum that cites it (evidence/ADDENDUM.md).

A package is never changed, so what an audit, a cleanup or a look at the ground finds later goes
into a folder of its own, named by the SHA-256 of its index like a package.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.disk import write_through
from runner.errors import UsageError
from runner.packages import INDEX, opened
from runner.records import Reads, canonical
from runner.runs.freeze import listed

FORMAT, VERSION = "suc-addendum", 1
IDENTITY = re.compile(r"^[0-9a-f]{64}$")


def publish(
    folder: Path, kind: str, package: str | None, documents: Mapping[str, Any], reads: Reads | None = None
) -> Path:
    """Write one addendum under `folder` and return its own folder; one atomic rename publishes it.

    `documents` are JSON objects by role, `package` is the id of the package it is about.
    """
    files = {f"{role}.json": (role, canonical(document)) for role, document in documents.items()}
    if reads is not None:
        files["reads.jsonl"] = ("reads", reads.to_bytes())
    index = index_of(kind, package, files)
    final = folder / hashlib.sha256(index).hexdigest()
    partial = folder / f".partial-{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    for path, data in [*((p, d) for p, (_, d) in files.items()), ("index.json", index)]:
        write_through(partial / path, data)
    if final.exists():
        # The same bytes were published before.
        shutil.rmtree(partial)
        return final
    partial.rename(final)
    return final


def index_of(kind: str, package: str | None, files: Mapping[str, tuple[str, bytes]]) -> bytes:
    """Return index.json's bytes for an addendum's files, given as (role, bytes) by path."""
    head = {"format": FORMAT, "version": VERSION, "kind": kind, "package": package}
    return canonical({**head, "files": listed(files)})


def package_id(path: Path) -> str:
    """Return the identity of the package at `path`, folder or archive. Raises UsageError when it is none."""
    name, files = opened(path)
    identity = hashlib.sha256(files[INDEX]).hexdigest()
    if name not in ("", identity):
        raise UsageError(
            f"{path} is not a published package",
            expected="a folder named by the SHA-256 of its index.json",
            found=identity,
            next_step="give the folder that the run printed as `package:`",
        )
    return identity


def newest_package(runs: Path, target: str, protocol_name: str) -> str | None:
    """Return the id of the newest package of a target and protocol under `runs`, if there is one."""
    found = []
    for index in runs.glob("*/*/index.json"):
        run = index.parent / "run.json"
        if not IDENTITY.match(index.parent.name) or not run.is_file():
            continue
        try:
            told = json.loads(run.read_bytes())
            if (told["target"], told["protocol"]) == (target, protocol_name):
                found.append((int(told["started_at_ms"]), index.parent.name))
        except (LookupError, TypeError, ValueError):
            continue  # damaged since: not a package that anything could cite
    return max(found)[1] if found else None
