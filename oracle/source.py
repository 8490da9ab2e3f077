"""Where a package's bytes come from: a folder, or a .tar/.tar.gz read member by member, never extracted.

A source lists entries without reading them and reads one file at a time with a bound, so that neither a
bomb nor a link reaches the judge.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path

MAX_FILE = 64 * 1024 * 1024
MAX_ENTRIES = 250_000
# A compressed archive cannot be read out of order, so its members are held; this bounds what a bomb can cost.
MAX_COMPRESSED_TOTAL = 1024 * 1024 * 1024


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


class Archive:
    """A package in a tar archive, the package's files at its top or in one top folder."""

    def __init__(self, path: Path):
        self.duplicates, self.strays, self._members, self._held = [], [], {}, {}
        try:
            self._tar = tarfile.open(path)  # noqa: SIM115 - closed by close()
            members = self._list()
        except (tarfile.TarError, EOFError, OSError, ValueError) as error:
            if isinstance(error, PermissionError):
                raise
            raise NotAPackage(
                f"{path}: expected a folder or a readable .tar or .tar.gz, found neither"
            ) from None
        self.name = self._top([_clean(member.name) for member in members])
        self.entries = {}
        for member in members:
            self._place(member)
        if self.entries.get("index.json", Entry("", 0, "")).kind != "file":
            raise NotAPackage(f"{path}: expected a package, found an archive without index.json")

    def _list(self) -> list[tarfile.TarInfo]:
        members, total = [], 0
        compressed = not isinstance(self._tar.fileobj, io.BufferedReader)
        for member in self._tar:
            members.append(member)
            total += member.size
            if len(members) > MAX_ENTRIES or (compressed and total > MAX_COMPRESSED_TOTAL):
                raise NotAPackage(
                    "the archive is too large to be judged compressed: unpack it and judge the folder"
                )
            if compressed and member.isreg() and member.size <= MAX_FILE:
                self._held[id(member)] = self._tar.extractfile(member).read()
        return members

    @staticmethod
    def _top(names: list[str]) -> str:
        if "index.json" in names:
            return ""
        tops = {name.split("/")[0] for name in names if name.count("/") == 1 and name.endswith("/index.json")}
        return tops.pop() if len(tops) == 1 else ""

    def _place(self, member: tarfile.TarInfo) -> None:
        name = _clean(member.name)
        if self.name:
            if name == self.name and member.isdir():
                return
            if not name.startswith(self.name + "/"):
                self.strays.append(member.name)
                return
            name = name[len(self.name) + 1 :]
        if name in ("", ".") and member.isdir():
            return
        if name.startswith("/") or ".." in name.split("/"):
            self.strays.append(member.name)
            return
        if name in self.entries:
            self.duplicates.append(name)
            return
        kind = "file" if member.isreg() else "folder" if member.isdir() else "other"
        self.entries[name] = Entry(name, member.size, kind)
        self._members[name] = member

    def read(self, path: str) -> bytes:
        member = self._members[path]
        if id(member) in self._held:
            return self._held[id(member)]
        return self._tar.extractfile(member).read()

    def close(self) -> None:
        self._tar.close()


def _clean(name: str) -> str:
    return name.removeprefix("./").rstrip("/") or "."


def open_source(path: Path) -> Folder | Archive:
    """The source behind a command-line argument, or NotAPackage with a sentence."""
    if path.is_dir():
        return Folder(path)
    if path.is_file():
        return Archive(path)
    raise NotAPackage(f"{path}: expected a package (a folder or a .tar/.tar.gz), found nothing there")
