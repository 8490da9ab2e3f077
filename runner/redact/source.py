"""Reading what is to be redacted: whole, and in canonical JSON, before anything else looks at it."""

import json
from pathlib import Path
from typing import Any

from runner.packages import Source, not_whole, read
from runner.records import canonical


def read_package(path: Path, *formats: tuple[str, int]) -> Source:
    """Read a package, folder or archive.

    Raises UsageError when it is no package, when its bytes are not the frozen ones, or when a document is not
    canonical JSON (its strings could then not be found with certainty).
    """
    source = read(path, *formats)
    for name, (_, data) in source.files.items():
        try:
            whole = b"".join(canonical(value) for _, value in documents(name, data))
        except (ValueError, RecursionError):
            whole = None
        if name.endswith((".json", ".jsonl")) and (whole != data or not data):
            raise not_whole(path, f"{name} in canonical JSON", "a document or line that is not")
    return source


def documents(path: str, data: bytes) -> list[tuple[str, Any]]:
    """Return (pointer, value) of each JSON document of a file: one for .json, one a line for .jsonl."""
    if path.endswith(".json"):
        return [("", json.loads(data))]
    if path.endswith(".jsonl"):
        return [(f"/{number}", json.loads(line)) for number, line in enumerate(data.splitlines(), 1)]
    return []
