"""Integrity: are these the bytes that were frozen? Section 1 of FORMAT.md, the P codes.

The index is checked whole before anything else; files are then hashed as they are read, one trial at a time.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from oracle import FORMAT_NAME, FORMAT_VERSION
from oracle.finding import Finding, Where, breach
from oracle.shape import Shape, problem
from oracle.source import MAX_FILE
from oracle.strict_json import Malformed, load_document

TOP_ROLES = {
    "protocol_source": "protocol.toml",
    "protocol": "protocol.json",
    "environment": "environment.json",
    "template": "template.json",
    "run": "run.json",
    "cleanup": "cleanup.json",
    "audit": "audit.json",
    "cost": "cost.json",
    "redactions": "redactions.json",
}
TRIAL_ROLES = {
    "trial": "trial.json",
    "journal": "journal.jsonl",
    "ledger": "ledger.jsonl",
    "queues": "queues.jsonl",
    "durable": "durable.jsonl",
    "logs": "logs.jsonl",
}
_PATH = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_ENTRY = Shape({"path": str, "role": str, "sha256": str, "size": int})
_ENTRY_MEMBERS = {"path", "role", "sha256", "size"}
_INDEX = Where("index.json")


@dataclass(slots=True)
class Inventory:
    """What the index says, after it was checked against what is there."""

    identity: str
    files: dict[str, dict] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def trial_files(self) -> dict[str, list[str]]:
        """Paths by trial folder, in path order."""
        by_trial: dict[str, list[str]] = {}
        for path in self.files:
            if path.startswith("trials/"):
                by_trial.setdefault(path.split("/")[1], []).append(path)
        return by_trial


def take_inventory(source) -> Inventory:
    """Read and check index.json and everything that can be said without reading another file."""
    entry = source.entries["index.json"]
    if entry.size > MAX_FILE:
        return Inventory("", findings=[breach("P15", f"index.json has {entry.size} bytes", _INDEX)])
    data = source.read("index.json")
    inventory = Inventory(hashlib.sha256(data).hexdigest())
    inventory.findings.extend(_check_name(source, inventory.identity))
    try:
        index = load_document(data)
    except Malformed as bad:
        inventory.findings.append(
            breach("P01", f"index.json is unreadable: {bad.message}", _INDEX, cause=bad.code)
        )
        return inventory
    inventory.findings.extend(_check_index(index))
    if any(found.code in ("P02", "P03", "P04") for found in inventory.findings):
        return inventory
    inventory.files = {entry["path"]: entry for entry in index["files"]}
    inventory.findings.extend(_check_entries(index["files"]))
    inventory.findings.extend(_check_presence(source, inventory.files))
    return inventory


def _check_name(source, identity):
    if re.fullmatch(r"[0-9A-Fa-f]{64}", source.name) and source.name != identity:
        yield breach(
            "P16",
            "the folder's name is not the package's identity",
            None,
            expected=identity,
            found=source.name,
        )


def _check_index(index):
    if not isinstance(index, dict):
        yield breach("P04", "index.json is not an object", _INDEX)
        return
    if index.get("format") != FORMAT_NAME:
        yield breach(
            "P02", f"expected format {FORMAT_NAME}, found {index.get('format')!r}", _INDEX / "format"
        )
        return
    if type(index.get("version")) is not int or index["version"] != FORMAT_VERSION:
        yield breach(
            "P03", f"found version {index.get('version')!r}, supported {FORMAT_VERSION}", _INDEX / "version"
        )
        return
    if set(index) != {"format", "version", "files"}:
        yield breach(
            "P04", f"expected members files, format, version, found {', '.join(sorted(index))}", _INDEX
        )
    wrong = problem(index.get("files"), [_ENTRY], "/files")
    if wrong is not None:
        yield breach("P04", wrong[1], Where("index.json", wrong[0]))
        return
    for position, entry in enumerate(index["files"]):
        if entry.keys() != _ENTRY_MEMBERS or not _DIGEST.match(entry["sha256"]) or entry["size"] < 0:
            yield breach("P04", "expected exactly path, role, sha256 and size", _INDEX / "files" / position)
            return


def _check_entries(entries):
    paths = [entry["path"] for entry in entries]
    if not paths:
        yield breach("P05", "the index lists no file", _INDEX / "files")
    if paths != sorted(paths):
        yield breach("P06", "the entries are not sorted by path", _INDEX / "files")
    seen: dict[str, int] = {}
    for position, entry in enumerate(entries):
        path, where = entry["path"], f"/files/{position}"
        other = seen.setdefault(path.lower(), position)
        if other != position and entries[other]["path"] == path:
            yield breach("P07", f"{path} is listed twice", Where("index.json", where))
        elif other != position:
            sentence = f"{path!a} differs only in case from another"
            yield breach("P09", sentence, Where("index.json", where), other=f"/files/{other}")
        if not well_named(path):
            yield breach("P08", f"{path!a} is not a permitted path", Where("index.json", where))
        elif not role_stands_at(entry["role"], path):
            sentence = f"role {entry['role']!a} cannot stand at {path}"
            yield breach("P19", sentence, Where("index.json", where))


def well_named(path: str) -> bool:
    return (
        path != "index.json"
        and len(path) <= 240
        and _PATH.match(path) is not None
        and not any(segment in (".", "..") for segment in path.split("/"))
    )


def role_stands_at(role: str, path: str) -> bool:
    parts = path.split("/")
    if len(parts) == 3 and parts[0] == "trials":
        return TRIAL_ROLES.get(role) == parts[2]
    return TOP_ROLES.get(role) == path


def _check_presence(source, listed):
    for name in source.duplicates:
        yield breach("P17", f"the archive holds {name} twice", Where(name))
    for name in source.strays:
        yield breach("P18", f"archive member {name!a} lies outside the package", _INDEX)
    if source.more:
        yield breach("P11", "something follows the end of the archive", None)
    folders = _folders(listed)
    for path, entry in source.entries.items():
        if entry.kind == "other":
            yield breach("P12", f"{path!a} is a link or a device", Where(path))
        elif entry.kind == "file" and path not in listed and path != "index.json":
            yield breach("P11", f"{path!a} is not listed", Where(path))
        elif entry.kind == "folder" and path not in folders:
            yield breach("P11", f"folder {path!a} holds nothing that is listed", Where(path))
    for path, entry in listed.items():
        found = source.entries.get(path)
        if not well_named(path) or (found is not None and found.kind == "other"):
            continue  # said already, as P08 or P12
        if found is None or found.kind == "folder":
            yield breach("P10", f"{path!a} is listed but is not there", Where(path))
        elif entry["size"] > MAX_FILE:
            yield breach("P15", f"{path} has {entry['size']} bytes", Where(path))
        elif found.size != entry["size"]:
            yield breach("P13", f"expected {entry['size']} bytes, found {found.size}", Where(path))


def _folders(paths) -> set[str]:
    """Every folder that holds one of the paths, however deep."""
    folders: set[str] = set()
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in folders:
            folders.add(path)
    return folders


def read_checked(source, entry: dict) -> tuple[bytes, Finding | None]:
    """The bytes of a listed file and a finding if they are not the listed ones."""
    data = source.read(entry["path"])
    digest = hashlib.sha256(data).hexdigest()
    if digest != entry["sha256"]:
        return data, breach(
            "P14",
            "the bytes are not the frozen ones",
            Where(entry["path"]),
            expected=entry["sha256"],
            found=digest,
        )
    return data, None
