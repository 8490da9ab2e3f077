"""Reading the package to redact: its bytes checked against its index before anything else looks at them."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.errors import UsageError
from runner.records import canonical
from runner.runs.freeze import FORMAT, VERSION

_PATH = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*\Z")
_ENTRY = {"path": str, "role": str, "sha256": str, "size": int}


@dataclass(frozen=True)
class Source:
    """A package as frozen: its identity, and role and bytes of every file but the index."""

    id: str
    files: dict[str, tuple[str, bytes]]

    def sha256(self, path: str) -> str:
        """Return the digest of one file as frozen."""
        return hashlib.sha256(self.files[path][1]).hexdigest()


def read_package(root: Path) -> Source:
    """Read a package and check its integrity.

    Raises UsageError when it is no package, when its bytes are not the frozen ones, or when a document is not
    canonical JSON (its strings could then not be found with certainty).
    """
    if not (root / "index.json").is_file():
        raise _refused(root, "a package folder with an index.json", "none")
    index_bytes = (root / "index.json").read_bytes()
    identity = hashlib.sha256(index_bytes).hexdigest()
    if re.fullmatch(r"[0-9a-fA-F]{64}", root.resolve().name) and root.resolve().name != identity:
        raise _refused(root, "a folder named by the SHA-256 of its index.json", "another name")
    entries = _entries(root, index_bytes)
    _check_set(root, {entry["path"] for entry in entries})
    return Source(identity, {entry["path"]: (entry["role"], _checked(root, entry)) for entry in entries})


def documents(path: str, data: bytes) -> list[tuple[str, Any]]:
    """Return (pointer, value) of each JSON document of a file: one for .json, one a line for .jsonl."""
    if path.endswith(".json"):
        return [("", json.loads(data))]
    if path.endswith(".jsonl"):
        return [(f"/{number}", json.loads(line)) for number, line in enumerate(data.splitlines(), 1)]
    return []


def _entries(root: Path, index_bytes: bytes) -> list[dict[str, Any]]:
    try:
        index = json.loads(index_bytes)
        if canonical(index) != index_bytes:
            raise ValueError
    except (ValueError, RecursionError) as error:
        raise _refused(root, "an index.json of canonical JSON", "something else") from error
    if not isinstance(index, dict) or (index.get("format"), index.get("version")) != (FORMAT, VERSION):
        raise _refused(root, f"format {FORMAT} version {VERSION}", "another format or version")
    entries = index.get("files")
    if not isinstance(entries, list) or not entries or not all(map(_well_formed, entries)):
        raise _refused(root, "an index of path, role, sha256 and size, with plain relative paths", "another")
    folded = [entry["path"].lower() for entry in entries]
    if len(set(folded)) != len(folded):
        raise _refused(root, "each path listed once", "a path twice")
    return entries


def _well_formed(entry: Any) -> bool:
    if not isinstance(entry, dict) or set(entry) != set(_ENTRY):
        return False
    path = entry["path"]
    return (
        all(type(entry[name]) is kind for name, kind in _ENTRY.items())
        and path != "index.json"
        and _PATH.match(path) is not None
        and not {".", ".."} & set(path.split("/"))
    )


def _check_set(root: Path, listed: set[str]) -> None:
    """What is listed and what is there must be the same set of regular files (CASES D26)."""
    found = set()
    for item in root.rglob("*"):
        if item.is_symlink() or not (item.is_file() or item.is_dir()):
            raise _refused(root, "regular files and folders alone", "a link or a device")
        if item.is_file():
            found.add(item.relative_to(root).as_posix())
    missing, extra = listed - found, found - listed - {"index.json"}
    if missing or extra:
        raise _refused(root, "exactly the listed files", f"{len(missing)} missing, {len(extra)} not listed")


def _checked(root: Path, entry: dict[str, Any]) -> bytes:
    path, data = entry["path"], (root / entry["path"]).read_bytes()
    if len(data) != entry["size"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise _refused(root, f"{path} as it was frozen", "other bytes")
    try:
        whole = b"".join(canonical(value) for _, value in documents(path, data))
    except (ValueError, RecursionError):
        whole = None
    if path.endswith((".json", ".jsonl")) and (whole != data or not data):
        raise _refused(root, f"{path} in canonical JSON", "a document or line that is not")
    return data


def _refused(root: Path, expected: str, found: str) -> UsageError:
    return UsageError(
        f"{root} cannot be redacted: its integrity is not whole",
        expected=expected,
        found=found,
        next_step=f"python -m oracle judge {root}",
    )
