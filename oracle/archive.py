"""A package in a .tar or .tar.gz, read member by member and never extracted."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path

from oracle.source import MAX_FILE, Entry, NotAPackage

MAX_ENTRIES = 250_000
MAX_CHUNK = 1024 * 1024
# A compressed archive cannot be read out of order, so its members are held; this bounds what a bomb can cost.
MAX_COMPRESSED_TOTAL = 1024 * 1024 * 1024


class Archive:
    """A package in a tar archive, the package's files at its top or in one top folder."""

    def __init__(self, path: Path):
        self.duplicates, self.strays, self._members, self._held = [], [], {}, {}
        try:
            mode = _mode(path)
            self._tar = tarfile.open(path, mode)  # noqa: SIM115 - closed by close()
            members = self._list(compressed=mode == "r:gz")
            self.more = self._more()
        except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
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

    def _list(self, compressed: bool) -> list[tarfile.TarInfo]:
        members, total = [], 0
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

    def _more(self) -> bool:
        """Whether anything but zeros follows what tarfile takes for the end; another tar might unpack it."""
        file, total = self._tar.fileobj, 0
        file.seek(self._tar.offset)
        while chunk := file.read(MAX_CHUNK):
            total += len(chunk)
            if chunk.strip(b"\0") or total > MAX_FILE:
                return True
        return False

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


def _mode(path: Path) -> str:
    with path.open("rb") as file:
        return "r:gz" if file.read(2) == b"\x1f\x8b" else "r:"


def _clean(name: str) -> str:
    return name.removeprefix("./") or "."
