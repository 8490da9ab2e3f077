"""The files of a package, for display: only bytes that the oracle has just vouched for."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.errors import LabError
from runner.packages import opened


class Evidence:
    """One intact package, folder or archive. Every read is checked against the index again.

    `verdict` is the oracle's document about it; make one only if its integrity is ok.
    """

    def __init__(self, path: Path, verdict: dict[str, Any]):
        self._path = path
        self._files = {} if path.is_dir() else opened(path)[1]
        raw = self._raw("index.json")
        if hashlib.sha256(raw).hexdigest() != verdict["package"]["id"]:
            raise _changed(path)
        self.index: list[dict[str, Any]] = json.loads(raw)["files"]
        self._digests = {entry["path"]: entry["sha256"] for entry in self.index}
        self._unreadable = _unreadable_lines(verdict)

    def _raw(self, name: str) -> bytes:
        try:
            return self._files[name] if self._files else (self._path / name).read_bytes()
        except (KeyError, OSError):
            raise _changed(self._path) from None

    def read(self, name: str) -> bytes | None:
        """Return a listed file's bytes, or None if the package does not list it."""
        if name not in self._digests:
            return None
        data = self._raw(name)
        if hashlib.sha256(data).hexdigest() != self._digests[name]:
            raise _changed(self._path)
        return data

    def document(self, name: str) -> dict[str, Any]:
        """Return a .json file's object, empty if there is none that can be read."""
        value = _parse(self.read(name) or b"")
        return value if isinstance(value, dict) and (name, None) not in self._unreadable else {}

    def records(self, name: str, read: str) -> Iterator[dict[str, Any]]:
        """Yield the responses of one read of a .jsonl file; lines the oracle refused are left out."""
        for number, line in enumerate((self.read(name) or b"").split(b"\n"), start=1):
            record = _parse(line)
            if not isinstance(record, dict) or (name, number) in self._unreadable:
                continue
            response = record.get("response")
            if str(record.get("read")).startswith(read) and isinstance(response, dict):
                yield {"of": record.get("of"), "at_ms": record.get("at_ms"), **response}


def _unreadable_lines(verdict: dict[str, Any]) -> set[tuple[str, int | None]]:
    """Return (file, line) of everything the oracle could not read; line None is a whole document."""
    found = set()
    for part in (verdict, verdict.get("probe") or {}, *verdict["trials"]):
        for finding in part.get("findings", ()):
            if finding["severity"] == "unreadable":
                witness = finding["witness"]
                first = str(witness.get("pointer", "")).strip("/").partition("/")[0]
                found.add((witness.get("path"), int(first) if first.isdigit() else None))
    return found


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _changed(path: Path) -> LabError:
    return LabError(
        f"{path.name} changed while it was being read",
        expected="the bytes that the oracle judged a moment ago",
        found="other bytes, or none",
        next_step="make the report again",
    )
