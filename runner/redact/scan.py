"""The leak scan: looks at every byte to be published and shares no code with what made it.

It is told the known values and the pseudonyms, and believes neither that the values are complete nor that
they were replaced: it decodes by its own means, in every form it can think of, and also looks for the shapes
of values that nobody told it about. It finds places, never prints values.
"""

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from runner.redact.forms import forms, readable

_BETWEEN_DIGITS = re.compile(r"(?<=\d)[^0-9a-z]{1,3}(?=\d)")
_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
# What looks like a value whoever it belongs to. The first group is what a pseudonym may stand in for.
_SHAPES = tuple(
    (rule, re.compile(pattern, flags))
    for rule, pattern, flags in (
        ("access-key-shape", "((?:A3T[A-Z0-9]|A(?:BI|CC|GP|ID|IP|KI|NP|NV|PK|RO|SC|SI)A)[A-Z0-9]{12,})", 0),
        ("access-key-shape", r"(?<![a-z0-9])((?:akia|asia|aroa|aida)[a-z0-9]{16,17})(?![a-z0-9])", re.I),
        ("account-shape", r"arn:[\w-]*:[\w-]*:[\w-]*:(\d{12})(?!\d)", re.I),
        ("account-shape", r"//[^/\s\"]{1,253}/(\d{12})/", 0),
        ("account-shape", r"-(\d{12})-(?:[a-z]{2,12}-){2,4}\d(?!\d)", re.I),
        ("account-shape", r"account[\w-]{0,8}[\"']?\s*[:=]\s*[\"']?(\d{12})(?!\d)", re.I),
        ("stack-id-shape", rf":(?:stack|changeset)/[^/\s\"]+/({_UUID})", re.I),
        ("signature-shape", r"signature=([0-9a-f]{32,})", re.I),
        (
            "secret-shape",
            r"(?:security-token|session_?token|secret_?access_?key)=([A-Za-z0-9%+/_-]{16,})",
            re.I,
        ),
        ("local-path-shape", r"(?<![\w.-])(/(?:home|Users)/\w+)", 0),
        (
            "local-endpoint-shape",
            r"(?<![\d.])((?:127\.\d+\.\d+\.\d+|0\.0\.0\.0|localhost|::1\]):\d{2,5})",
            re.I,
        ),
    )
)


class Leak(NamedTuple):
    """A known value or the shape of one: which rule, in which file and line, and how it was encoded."""

    rule: str
    place: str
    form: str

    def __str__(self) -> str:
        return f"{self.rule} in {self.place} ({self.form})"


class Scan:
    """Searches bytes for known values ((rule, value) pairs) and for shapes that are no `pseudonyms`."""

    def __init__(self, values: Iterable[tuple[str, str]], pseudonyms: Iterable[str]):
        # The emulator's account is everybody's, so its shape gives nobody away.
        self._allowed = {"000000000000", *map(str.lower, pseudonyms)}
        self._words: list[tuple[str, re.Pattern[str]]] = []
        self._values: list[tuple[str, str]] = []
        self._numbers: list[tuple[str, str]] = []
        self._uuids: dict[str, str] = {}
        # Encoded runs recur thousands of times (keys, digests); each is looked into where it first stands.
        self._runs: set[str] = set()
        for rule, value in values:
            self._learn(rule, value.lower())

    def _learn(self, rule: str, value: str) -> None:
        if re.fullmatch(_UUID, value):
            # There may be thousands of these, so they are looked up rather than searched for one by one.
            self._uuids[value.replace("-", "")] = rule
        elif rule in ("user-name", "host-name", "local-path"):
            self._words.append((rule, re.compile(_word(rule, value))))
        else:
            self._values.append((rule, value))
            if value.isdigit() and len(value.lstrip("0")) >= 10:
                self._numbers.append((rule, value.lstrip("0")))
        # A plain hash of a value that can be guessed is the value (CASES D28).
        for algorithm in ("md5", "sha1", "sha256", "sha512"):
            self._values.append((f"{rule}, hashed", hashlib.new(algorithm, value.encode()).hexdigest()))

    def files(self, files: dict[str, bytes]) -> list[Leak]:
        """Scan files and their names; archives also member by member, and their headers."""
        found: set[Leak] = set()
        for number, (path, data) in enumerate(_unpacked(files), 1):
            named = set(self._text(path, f"the name of file {number}"))
            # A name that leaks must not be repeated in the report.
            place = f"file {number}" if named else path
            found |= named | set(self._data(data, place))
        packed = (path for path in files if path.endswith(".tar.gz"))
        found |= {
            Leak("archive", path, "bytes beside the packed ones") for path in packed if not _bare(files[path])
        }
        return sorted(found)

    def _data(self, data: bytes, place: str) -> Iterator[Leak]:
        lines = data.split(b"\n") if place.endswith((".json", ".jsonl", ".toml")) else [data]
        for number, line in enumerate(lines, 1):
            yield from self._text(readable(line), f"{place} line {number}" if len(lines) > 2 else place)

    def _text(self, text: str, place: str) -> Iterator[Leak]:
        for form, decoded in forms(text, self._runs):
            if form == "too deep":
                yield Leak("encoding", place, "more layers of encoding than can be looked through")
            for rule in self._rules_in(decoded):
                yield Leak(rule, place, form)

    def _rules_in(self, text: str) -> Iterator[str]:
        folded = text.lower()
        joined = _BETWEEN_DIGITS.sub("", folded) if self._numbers else ""
        for rule, value in self._values:
            if value in folded:
                yield rule
        for rule, number in self._numbers:
            if number in joined:
                yield rule
        for rule, word in self._words:
            if word.search(folded):
                yield rule
        if self._uuids:
            for match in re.finditer(rf"(?={_UUID})", folded):
                digits = folded[match.start() : match.start() + 36].replace("-", "")[:32]
                if digits in self._uuids:
                    yield self._uuids[digits]
        for rule, shape in _SHAPES:
            if any(match.group(1).lower() not in self._allowed for match in shape.finditer(text)):
                yield rule


def _word(rule: str, value: str) -> str:
    """Return the expression for a value that is only itself between non-letters (REDACTION.md, section 2)."""
    if rule != "local-path":
        letters = "[._ -]?".join(re.escape(part) for part in re.split("[._ -]", value))
        return rf"(?<![a-z0-9]){letters}(?![a-z0-9])"
    parts = [re.escape(part) for part in re.split(r"[\\/]+", value)]
    if len(parts) > 2:
        return r"[\\/]+(?:\.[\\/]+)?".join(parts) + "(?![a-z0-9])"
    return rf"(?<![a-z0-9._~-]){re.escape(value)}(?![a-z0-9_-])"


def _unpacked(files: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield every file; of an archive all that it unzips to: the headers together, and each member."""
    for path, data in sorted(files.items()):
        if not path.endswith(".tar.gz"):
            yield path, data
            continue
        tar = gzip.decompress(data)
        yield path, _headers(tar)
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            for member in archive.getmembers():
                file = archive.extractfile(member)
                yield member.name, file.read() if file else b""


def _bare(data: bytes) -> bool:
    """Say if a gzip file is one stream and a header without name, comment or time."""
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    stream.decompress(data)
    return data[3] == 0 and data[4:8] == bytes(4) and stream.eof and not stream.unused_data


def _headers(tar: bytes) -> bytes:
    """Return what an archive holds besides its members' bytes."""
    kept, at = [], 0
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        for member in archive.getmembers():
            kept.append(tar[at : member.offset_data])
            # Fields of fixed width touch each other, which would hide a name from a search for words.
            kept += (member.uname.encode(), member.gname.encode(), member.linkname.encode())
            at = member.offset_data + member.size
    return b"\n".join([*kept, tar[at:]])
