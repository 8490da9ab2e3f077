"""Pre-registration: what protocol, judge, format and code were, said before any evidence exists.

A registration is one canonical JSON file of digests. It proves an order only together with something
outside this repository: a time-stamp token of a third party (runner/study/timestamp.py), or a public commit.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from runner.disk import write_through
from runner.errors import UsageError
from runner.places import PROJECT_ROOT
from runner.protocol import Protocol
from runner.records import canonical
from runner.runs.freeze import code_identity

FORMAT, VERSION = "suc-preregistration", 1


def folder() -> Path:
    """Return where registrations are kept; SUC_REGISTRATIONS_DIR moves it (the tests do)."""
    return Path(os.environ.get("SUC_REGISTRATIONS_DIR") or PROJECT_ROOT / "evidence" / "preregistrations")


def judged_by(root: Path = PROJECT_ROOT) -> dict[str, Any]:
    """Return the digests of what gives a verdict: the oracle's source, file by file, and the format."""
    files = [
        {"path": path.relative_to(root).as_posix(), "sha256": _sha256(path.read_bytes())}
        for path in sorted((root / "oracle").rglob("*.py"))
    ]
    return {
        "oracle": {"files": files, "sha256": _sha256(canonical(files))},
        "format": {
            "path": "evidence/FORMAT.md",
            "sha256": _sha256((root / "evidence/FORMAT.md").read_bytes()),
        },
    }


def contents(
    protocol: Protocol, assets: list[dict[str, str]], at_ms: int, root: Path = PROJECT_ROOT
) -> dict[str, Any]:
    """Return the registration of a protocol as things stand. `at_ms` is what this machine's clock says."""
    return {
        "suc": FORMAT,
        "version": VERSION,
        "at_ms": at_ms,
        "protocol": {"name": protocol.name, "sha256": protocol.sha256},
        **judged_by(root),
        "assets": assets,
        "code": code_identity(),
    }


def write(registration: dict[str, Any], stamp: str) -> Path:
    """Write a registration under a name of its own; one that exists is never overwritten."""
    path = folder() / f"{registration['protocol']['name']}-{stamp}.json"
    if path.exists():
        raise UsageError(
            "there is already a registration of this second",
            expected=f"no file {path.name}",
            found="one",
            next_step="run the command again",
        )
    write_through(path, canonical(registration))
    return path


def read(path: Path) -> dict[str, Any]:
    """Return a registration. Raises UsageError for anything else."""
    try:
        registration = json.loads(path.read_bytes())
        known = (registration["suc"], registration["version"]) == (FORMAT, VERSION)
        if known:
            _demand_members(registration)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _not_one(path, f"{type(error).__name__}: {error}") from error
    if not known:
        raise _not_one(path, f"{registration['suc']} version {registration['version']}")
    return registration


def _demand_members(registration: dict[str, Any]) -> None:
    """Raise KeyError or TypeError, as a missing member does, unless all that is compared later is there."""
    listed = [(registration["oracle"]["files"], "path"), (registration["assets"], "logical_id")]
    named = [file[key] + file["sha256"] for files, key in listed for file in files]
    named += [registration["protocol"][key] for key in ("name", "sha256")]
    if not all(isinstance(value, str) for value in named) or not isinstance(registration["format"], dict):
        raise TypeError("a digest or a name that is no text")


def newest(protocol_name: str) -> Path | None:
    """Return the newest registration of a protocol, by the time in its name."""
    # The rest of the name must be the time: `study-1-*` is not `study-1-rehearsal-*`.
    stamped = [
        p for p in folder().glob(f"{protocol_name}-*.json") if "-" not in p.stem[len(protocol_name) + 1 :]
    ]
    return max(stamped, key=lambda path: path.stem, default=None)


def differences(
    registration: dict[str, Any],
    protocol: Protocol,
    assets: list[dict[str, str]] | None,
    root: Path = PROJECT_ROOT,
) -> list[str]:
    """Return what is no longer as it was registered, each named. `assets` None leaves those unasked."""
    found = []
    if registration["protocol"]["sha256"] != protocol.sha256:
        found.append(f"protocol {protocol.name}")
    now = judged_by(root)
    before, after = (
        {file["path"]: file["sha256"] for file in judge["oracle"]["files"]} for judge in (registration, now)
    )
    found += [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    if registration["format"] != now["format"]:
        found.append(now["format"]["path"])
    if assets is not None:
        kept, deployed = (
            {asset["logical_id"]: asset["sha256"] for asset in side}
            for side in (registration["assets"], assets)
        )
        changed = [
            name for name in sorted(kept.keys() | deployed.keys()) if kept.get(name) != deployed.get(name)
        ]
        found += [f"asset {name}" for name in changed]
    return found


def demand(protocol: Protocol, root: Path = PROJECT_ROOT) -> dict[str, str]:
    """Return what the canonical stage records of its registration.

    Raises UsageError when there is none, or when protocol, oracle or format have changed since.
    """
    command = f"python -m runner preregister --protocol {protocol.name}"
    path = newest(protocol.name)
    if path is None:
        raise UsageError(
            f"{protocol.name} is not registered, so nothing says what would be judged and how",
            expected="a registration under evidence/preregistrations/",
            found="none",
            next_step=command,
        )
    changed = differences(read(path), protocol, None, root)
    if changed:
        raise UsageError(
            f"what would run or judge is not what {path.name} registered",
            expected="protocol, oracle and format as registered",
            found="changed: " + ", ".join(changed),
            next_step=f"restore them, or register anew before the stage: {command}",
        )
    return {"file": path.name, "sha256": _sha256(path.read_bytes())}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _not_one(path: Path, found: str) -> UsageError:
    return UsageError(
        f"{path.name} is no registration",
        expected=f"{FORMAT} version {VERSION}",
        found=found,
        next_step="see `python -m runner preregister --help`",
    )
