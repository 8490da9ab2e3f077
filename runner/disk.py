"""Writing so that it is still there afterwards: files and folders flushed to the disk, torn lines known."""

import os
from pathlib import Path


def write_through(path: Path, data: bytes) -> None:
    """Write a file and return when it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def whole_lines(path: Path) -> bytes:
    """Return the finished lines of a file; what a killed writer left of its last one is not there."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]
