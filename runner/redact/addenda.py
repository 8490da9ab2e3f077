"""From an addendum to its public copy: the same rules, the same scan, and it cites the package's public copy.

An addendum names its package by the SHA-256 of an index, which a public copy of that package may have to
withhold (manifest.py). So the package is redacted again here, in memory: the same package gives the same
copy, whose identity takes the place of the original's.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.errors import UsageError
from runner.packages import INDEX, Source, opened
from runner.redact import manifest
from runner.redact.archive import pack
from runner.redact.known import Machine, gather
from runner.redact.manifest import Rewritten, tells_its_index
from runner.redact.redaction import Redacted, check_out, index_entry, lines, publish, rewritten, scan
from runner.redact.replace import Redactor, Refused
from runner.redact.source import documents, read_package
from runner.runs import addendum
from runner.runs.freeze import index_of

ADDENDUM = addendum.FORMAT, addendum.VERSION
KINDS = ("audit", "cleanup", "ground")
# Members whose words are an addendum's own; redaction may change none of them.
OWN_WORDS = {"status", "stack_status", "result", "target", "grade", "format", "type", "found_by", "read"}


@dataclass(frozen=True)
class _Cited:
    """The package that an addendum is about, and its public copy's identity."""

    source: Source
    redactor: Redactor
    copy_id: str
    tells_index: bool


def is_addendum(path: Path) -> bool:
    """Whether what lies at `path` calls itself an addendum. Raises UsageError where no index is."""
    try:
        index = json.loads(opened(path)[1][INDEX])
    except (ValueError, RecursionError):
        return False
    return isinstance(index, dict) and index.get("format") == addendum.FORMAT


def redact_addendum(path: Path, out: Path, machine: Machine, package: Path | None) -> Redacted:
    """Publish a redacted copy of the addendum at `path` as the new folder `out`.

    `package` is the original package that it cites. Raises UsageError for bad input, before anything is
    written, and Refused when a value could not be removed or the copy would say something else.
    """
    check_out(path, out)
    source = read_package(path, ADDENDUM)
    kind = source.index.get("kind")
    if kind not in KINDS:
        raise UsageError(
            f"{path} is no addendum of this version",
            expected=f"kind {', '.join(KINDS)}",
            found=str(kind)[:40],
            next_step="see evidence/ADDENDUM.md",
        )
    cited = _cited(source, package, machine)
    told = [*lines(source), *(lines(cited.source) if cited else ())]
    redactor = Redactor(gather(told, machine))
    values = redactor.known.spellings()
    if cited:
        redactor.pseudonyms.go_on_from(cited.redactor.pseudonyms)
        if cited.copy_id != cited.source.id:
            values.append(("package-id", cited.source.id))
    files, replaced = rewritten(source, redactor)
    _demand_same_words(source, files)
    index = addendum.index_of(kind, cited.copy_id if cited else None, _plain(files))
    identity = hashlib.sha256(index).hexdigest()
    name = f"{kind}-addendum.tar.gz"
    tells_index = cited is None or cited.tells_index
    outputs = {
        name: pack(identity, {INDEX: index, **{path: file.data for path, file in files.items()}}),
        manifest.NAME: manifest.build(identity, files, index_entry(source, index), tells_index),
    }
    scan(outputs, redactor, values)
    publish(out, outputs)
    return Redacted(out, name, identity, source.id, dict(sorted(replaced.items())), None)


def _cited(source: Source, package: Path | None, machine: Machine) -> _Cited | None:
    """Return the package that the addendum cites. Raises UsageError unless it is the one given."""
    wanted = source.index.get("package")
    original = read_package(package) if package else None
    if wanted != (original.id if original else None):
        raise UsageError(
            "the addendum cites a package by an identity that its public copy does not have",
            expected=f"--package with package {wanted}" if wanted else "no --package: it cites none",
            found=f"package {original.id}" if original else "no --package",
            next_step="give the original package; its public copy's identity is computed from it",
        )
    if original is None:
        return None
    redactor = Redactor(gather(lines(original), machine))
    files, _ = rewritten(original, redactor)
    copy_id = hashlib.sha256(index_of(_plain(files))).hexdigest()
    return _Cited(original, redactor, copy_id, tells_its_index(files))


def _plain(files: dict[str, Rewritten]) -> dict[str, tuple[str, bytes]]:
    return {path: (file.role, file.data) for path, file in files.items()}


def _demand_same_words(source: Source, files: dict[str, Rewritten]) -> None:
    """No oracle judges an addendum, so its own words are compared: statuses, results, types."""
    for path, (_, data) in source.files.items():
        before, after = _own_words(path, data), _own_words(path, files[path].data)
        if before != after:
            raise Refused(
                "redaction would change what the addendum says; nothing was written",
                expected=f"every word of {', '.join(sorted(OWN_WORDS))} in {path} as it is",
                found=f"{sum((before - after).values())} of them changed",
                next_step="a name of this machine is one of those words: redact it on another machine",
            )


def _own_words(path: str, data: bytes) -> Counter[tuple[str, str]]:
    return Counter(pair for _, value in documents(path, data) for pair in _words(value))


def _words(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for inner in value:
            yield from _words(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in OWN_WORDS and isinstance(inner, str | list):
                yield key, json.dumps(inner)
            yield from _words(inner)
