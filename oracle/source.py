"""Where a package's bytes come from: a folder, or an archive (archive.py).

A source lists entries without reading them and reads one file at a time with a bound, so that neither a
bomb nor a link reaches the judge.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

MAX_FILE = 64 * 1024 * 1024


class NotAPackage(Exception):
    """The argument is no package at all: a mistake of the user, said in one sentence."""


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    size: int
    kind: str  # "file", "folder" or "other" (a link, a device)


class Folder:
    """A package as a folder on disk."""

    def __init__(self, root: Path):
        self._root, self.name, self.duplicates, self.strays = str(root), root.resolve().name, [], []
        self.more = False
        if not (root / "index.json").is_file() or (root / "index.json").is_symlink():
            raise NotAPackage(f"{root}: expected a package, found a folder without index.json")
        self.entries = {entry.path: entry for entry in self._walk("")}

    def _walk(self, prefix: str):
        with os.scandir(f"{self._root}/{prefix}") as found:
            for item in sorted(found, key=lambda item: item.name):
                path = f"{prefix}/{item.name}" if prefix else item.name
                info = item.stat(follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode):
                    yield Entry(path, 0, "folder")
                    yield from self._walk(path)
                else:
                    yield Entry(path, info.st_size, "file" if stat.S_ISREG(info.st_mode) else "other")

    def read(self, path: str) -> bytes:
        # O_NOFOLLOW: the entry was a regular file when it was listed and must still be one.
        descriptor = os.open(f"{self._root}/{path}", os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            # One byte more than listed: a file that grew since then no longer has its digest.
            return file.read(self.entries[path].size + 1)

    def close(self) -> None:
        """Nothing is held open."""


def open_source(path: Path):
    """The source behind a command-line argument, or NotAPackage with a sentence."""
    if path.is_dir():
        return Folder(path)
    if path.is_file():
        from oracle.archive import Archive  # most packages are folders, and tarfile is slow to import

        return Archive(path)
    raise NotAPackage(f"{path}: expected a package (a folder or a .tar/.tar.gz), found nothing there")
