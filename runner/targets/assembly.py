"""Synthesising the stack for the local cloud, once per state of its sources.

The runner never imports the stack: it runs `app.py` as the CDK CLI would and keeps the cloud
assembly under an ignored folder, named by a digest of everything the synthesis reads.
"""

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from runner.errors import LabError
from runner.places import PROJECT_ROOT

ASSEMBLIES = PROJECT_ROOT / ".suc" / "assemblies"
SYNTH_LIMIT_S = 300

# What `app.py` reads: code by folder, and single files.
SOURCE_FOLDERS = ("stacks", "lambdas")
SOURCE_FILES = (
    "app.py",
    "cdk.json",
    "runner/__init__.py",
    "runner/errors.py",
    "runner/names.py",
    "runner/protocol.py",
    "runner/protocol_relations.py",
)


def synthesise(protocol_name: str) -> tuple[Path, bool]:
    """Return (cloud assembly, whether it was synthesised now rather than found unchanged).

    Raises LabError with the end of the synthesis' own output when it fails.
    """
    kept = ASSEMBLIES / f"{protocol_name}@{_digest(protocol_name)}"
    if kept.is_dir():
        return kept, False
    partial = ASSEMBLIES / f".partial-{protocol_name}-{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(partial),
        "CDK_CONTEXT_JSON": json.dumps({"protocol": protocol_name}),
    }
    done = subprocess.run(
        [sys.executable, str(PROJECT_ROOT / "app.py")],
        cwd=PROJECT_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SYNTH_LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(partial, ignore_errors=True)
        raise LabError(
            "the stack could not be synthesised",
            expected="app.py to end with 0",
            found=f"{done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}",
            next_step="run `uv run python app.py` to see it whole",
        )
    try:
        partial.rename(kept)
    except OSError:
        # Another process made the same one meanwhile; theirs is as good.
        shutil.rmtree(partial, ignore_errors=True)
    for stale in set(ASSEMBLIES.glob(f"{protocol_name}@*")) - {kept}:
        shutil.rmtree(stale, ignore_errors=True)
    return kept, True


def _digest(protocol_name: str) -> str:
    digest = hashlib.sha256()
    for path in _sources(protocol_name):
        digest.update(f"{path.relative_to(PROJECT_ROOT)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    # The layer vendors installed distributions, so their versions are sources too.
    installed = sorted(f"{d.name}=={d.version}" for d in importlib.metadata.distributions())
    digest.update("\n".join([sys.version, *installed]).encode())
    return digest.hexdigest()[:16]


def _sources(protocol_name: str) -> Iterator[Path]:
    for folder in SOURCE_FOLDERS:
        yield from sorted((PROJECT_ROOT / folder).rglob("*.py"))
    yield from (PROJECT_ROOT / name for name in SOURCE_FILES)
    yield PROJECT_ROOT / "evidence" / "protocols" / f"{protocol_name}.toml"
