"""Zip files that depend on their content alone, and their digest."""

import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

BUILD_DIR = Path(__file__).resolve().parent.parent / "build"

# The earliest time a zip can hold; file times must not change an asset.
_EPOCH = (1980, 1, 1, 0, 0, 0)


class AssetError(Exception):
    """What the functions need cannot be packed; the message names what and why."""


def digest(files: Mapping[str, bytes], *, salt: str) -> str:
    """Return the SHA-256 over names and contents; `salt` names whatever else shapes the zip."""
    total = hashlib.sha256(salt.encode())
    for name in sorted(files):
        total.update(f"\n{name}\0{hashlib.sha256(files[name]).hexdigest()}".encode())
    return total.hexdigest()


def write_zip(path: Path, files: Mapping[str, bytes], *, compression: int = zipfile.ZIP_DEFLATED) -> None:
    """Write `files` to `path` at once: a killed or a concurrent synth leaves no half-written zip."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(partial, "w", compression) as archive:
            for name in sorted(files):
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.compress_type = compression
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, files[name])
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
