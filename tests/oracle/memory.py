"""A package in memory, as a source for the judge: nothing touches the disk in the fast tests."""

from __future__ import annotations

from oracle.judge import Report, judge_source
from oracle.source import Entry
from tests.oracle.frozen import Package, reindex


class Memory:
    """The same face as oracle.source.Folder."""

    def __init__(self, files: dict[str, bytes]):
        self.files, self.name, self.duplicates, self.strays, self.more = files, "", [], [], False
        self.entries = {path: Entry(path, len(data), "file") for path, data in files.items()}

    def read(self, path: str) -> bytes:
        return self.files[path]

    def close(self) -> None:
        """Nothing is held open."""


def judge(package: Package | dict[str, bytes], keep=None) -> Report:
    files = package.render() if isinstance(package, Package) else package
    return judge_source(Memory(files), "memory", keep)


def judge_damaged(files: dict[str, bytes]) -> Report:
    """Judge the files under a fresh index: intact bytes, whatever they say."""
    return judge_source(Memory(reindex(files)), "memory")


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.all_findings()}
