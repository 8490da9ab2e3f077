"""Opening a package: a folder, .tar or .tar.gz, read into memory and checked against its index.

Nothing is unpacked to the disk, so no path of an archive is ever used as one. The oracle has a reader of
its own and shares nothing with this one, on purpose.
"""

import hashlib
import json
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.errors import UsageError
from runner.records import canonical

INDEX = "index.json"
FORMAT = "suc-evidence", 1
# What a file that is no archive, or a torn one, makes its reader raise.
UNREADABLE = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)
# What an archive may hold when unpacked, so that a bomb is refused before it is read.
MAX_BYTES, MAX_ENTRIES = 1024**3, 250_000

_IDENTITY = re.compile(r"[0-9a-fA-F]{64}")
_PATH = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*\Z")
_ENTRY = {"path": str, "role": str, "sha256": str, "size": int}


@dataclass(frozen=True)
class Source:
    """A package as frozen: its identity, its index, and role and bytes of every other file."""

    id: str
    index: dict[str, Any]
    files: dict[str, tuple[str, bytes]]

    def sha256(self, path: str) -> str:
        """Return the digest of one file as frozen."""
        return hashlib.sha256(self.files[path][1]).hexdigest()


def read(path: Path, *formats: tuple[str, int]) -> Source:
    """Return a package whose bytes are those that were frozen; `formats` are others than a package's.

    Raises UsageError when it is no package or when its bytes are others.
    """
    name, files = opened(path)
    index_bytes = files.pop(INDEX)
    identity = hashlib.sha256(index_bytes).hexdigest()
    if _IDENTITY.fullmatch(name) and name != identity:
        raise not_whole(path, "a folder named by the SHA-256 of its index.json", "another name")
    index = _index(path, index_bytes, (FORMAT, *formats))
    listed = {entry["path"]: entry for entry in index["files"]}
    missing, extra = listed.keys() - files.keys(), files.keys() - listed.keys()
    if missing or extra:
        raise not_whole(path, "exactly the listed files", f"{len(missing)} missing, {len(extra)} not listed")
    for entry in listed.values():
        data = files[entry["path"]]
        if len(data) != entry["size"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise not_whole(path, f"{entry['path']} as it was frozen", "other bytes")
    return Source(identity, index, {p: (entry["role"], files[p]) for p, entry in listed.items()})


def opened(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return the name of the package's folder ("" in an archive without one) and its files by path.

    Nothing is checked but that every entry is a regular file or a folder, once. Raises UsageError, and
    OSError for a place that cannot be read.
    """
    try:
        if path.is_dir() or path.is_file():
            return _opened(path)
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.filename:
            raise  # a place that is closed says nothing of what lies there
        raise _no_package(path, "neither") from None
    raise _no_package(path, "neither" if path.exists() else "nothing there")


def _opened(path: Path) -> tuple[str, dict[str, bytes]]:
    files: dict[str, bytes] = {}
    for name, data in _folder(path) if path.is_dir() else _archive(path):
        if data is None or name in files:
            raise not_whole(path, "regular files and folders alone, each once", "a link, a device or a copy")
        files[name] = data
    if path.is_dir() or INDEX in files:
        top = path.resolve().name if path.is_dir() else ""
    else:
        # The format allows one top folder instead.
        tops = {name.partition("/")[0] for name in files}
        top = tops.pop() if len(tops) == 1 else ""
        files = {name.removeprefix(f"{top}/"): data for name, data in files.items()}
    if INDEX not in files:
        raise _no_package(path, "no index.json in it")
    return top, files


def _folder(root: Path) -> Iterator[tuple[str, bytes | None]]:
    if not (root / INDEX).is_file():
        return  # before every file of some other folder is read
    for item in root.rglob("*"):
        regular = item.is_file() and not item.is_symlink()
        if regular or item.is_symlink() or not item.is_dir():
            yield item.relative_to(root).as_posix(), item.read_bytes() if regular else None


def _archive(path: Path) -> Iterator[tuple[str, bytes | None]]:
    left = MAX_BYTES
    with tarfile.open(path) as archive:
        for number, member in enumerate(archive):
            left -= member.size
            if left < 0 or number >= MAX_ENTRIES:
                raise _no_package(path, "an archive too large to be one")
            if not member.isdir():
                stream = archive.extractfile(member) if member.isreg() else None
                yield member.name.removeprefix("./"), stream.read() if stream else None


def _index(path: Path, data: bytes, formats: tuple[tuple[str, int], ...]) -> dict[str, Any]:
    try:
        index = json.loads(data)
        if canonical(index) != data:
            raise ValueError
    except (ValueError, RecursionError) as error:
        raise not_whole(path, "an index.json of canonical JSON", "something else") from error
    if not isinstance(index, dict) or (index.get("format"), index.get("version")) not in formats:
        expected = " or ".join(f"{name} version {version}" for name, version in formats)
        raise not_whole(path, f"format {expected}", "another format or version")
    entries = index.get("files")
    if not isinstance(entries, list) or not entries or not all(map(_well_formed, entries)):
        raise not_whole(path, "an index of path, role, sha256 and size, with plain relative paths", "another")
    folded = [entry["path"].lower() for entry in entries]
    if len(set(folded)) != len(folded):
        raise not_whole(path, "each path listed once", "a path twice")
    return index


def _well_formed(entry: Any) -> bool:
    if not isinstance(entry, dict) or set(entry) != set(_ENTRY):
        return False
    path = entry["path"]
    return (
        all(type(entry[name]) is kind for name, kind in _ENTRY.items())
        and path != INDEX
        and _PATH.match(path) is not None
        and not {".", ".."} & set(path.split("/"))
    )


def not_whole(path: Path, expected: str, found: str) -> UsageError:
    """Return the refusal of a package whose integrity is broken."""
    return UsageError(
        f"{path} cannot be used: its integrity is not whole",
        expected=expected,
        found=found,
        next_step=f"python -m oracle judge {path}",
    )


def _no_package(path: Path, found: str) -> UsageError:
    return UsageError(
        f"{path} is no package",
        expected="a package folder, .tar or .tar.gz, with an index.json",
        found=found,
        next_step="give the folder that the run printed as `package:`; see `python -m runner runs`",
    )
