"""The strict loader: canonical JSON bytes or a code that says why not.

The fast path parses with the C scanner and compares the canonical re-serialisation with the bytes; equal
bytes exclude every malformation at once (a repeated key, a space, an escape would not come back). Only
when they differ does the slow path look for the reason.
"""

from __future__ import annotations

import json
import re

MAX_INT = 2**53 - 1
MAX_DEPTH = 64
_BOM = b"\xef\xbb\xbf"
_STAMP = re.compile(rb'\{"at_ms":(0|-?[1-9][0-9]{0,15}),')
_BLANK = re.compile(rb"(?:\A|\n)[ \t]*\n")


class Malformed(Exception):
    """Bytes that are no evidence; `code` is the J code, `line` the line of a .jsonl file (0 = all of it)."""

    def __init__(self, code: str, message: str, line: int = 0):
        super().__init__(message)
        self.code, self.message, self.line = code, message, line


def _integer(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > MAX_INT:
        raise Malformed("J10", f"expected an integer within ±(2^53-1), found {text[:20]}")
    return int(text)


def _no_float(text: str):
    raise Malformed("J09", f"expected an integer, found {text[:20]}")


def _no_constant(text: str):
    raise Malformed("J08", f"expected a number, found {text}")


_decoder = json.JSONDecoder(parse_int=_integer, parse_float=_no_float, parse_constant=_no_constant)
# No check for circles: what was parsed has none.
_encoder = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)
_CONTAINERS = (dict, list)


def canonical(value) -> str:
    """The one text that a value may have."""
    return _encoder.encode(value)


def load_value(data: bytes):
    """One canonical JSON value without its line feed."""
    text = _text(data)
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise Malformed("J13", f"nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise Malformed("J03", f"not one complete JSON value: {error.msg} at character {error.pos}") from None
    # A nesting bomb that the scanner survived is refused before the encoder walks it.
    if _too_deep(data, value):
        raise Malformed("J13", f"nested deeper than {MAX_DEPTH} levels")
    if canonical(value) != text:
        _explain(text)
    return value


def _text(data: bytes) -> str:
    if data.startswith(_BOM):
        raise Malformed("J01", "begins with a byte order mark")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("J02", f"not UTF-8 at byte {error.start}") from None


def unique(pairs: list[tuple]) -> dict:
    """An object of its members, for json's object_pairs_hook: which of two is meant nobody can know."""
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        seen: set = set()
        repeated = next(key for key in keys if key in seen or seen.add(key))
        raise Malformed("J07", f"key {repeated[:40]!r} is repeated")
    return dict(pairs)


def _explain(text: str) -> None:
    """Raise the reason why bytes that parse are not the canonical ones."""
    value = json.loads(text, object_pairs_hook=unique)
    if _has_surrogate(value):
        raise Malformed("J11", "a string holds a lone surrogate")
    raise Malformed("J12", "not the canonical bytes (key order, spaces or escapes)")


def _too_deep(data: bytes, value) -> bool:
    """Whether a value has too many levels; fewer opening brackets than levels need no look."""
    return data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH


def _depth(value) -> int:
    """Levels of containers, one level at a time."""
    depth, level = 0, [value] if type(value) in _CONTAINERS else []
    while level:
        depth += 1
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) in _CONTAINERS
        ]
    return depth


def _has_surrogate(value) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in canonical(value))


def load_document(data: bytes):
    """A .json file: one canonical value and one line feed."""
    _check_lines(data)
    if data.count(b"\n") != 1:
        raise Malformed("J04", "expected one line ending in one line feed")
    return load_value(data[:-1])


def load_lines(data: bytes):
    """A .jsonl file as (line number, value or Malformed); a bad line does not hide the good ones."""
    lines = data.split(b"\n")
    complete = lines.pop() == b""
    known: dict[bytes, dict] = {}
    for number, line in enumerate(lines, 1):
        yield number, _repeated(line, known) or _line(line, number, known)
    if not complete:
        half = data[data.rfind(b"\n") + 1 :]
        # Half a last line is a killed writer; its content is not evidence even if it happens to parse.
        reason = _line(half, len(lines) + 1, {})
        code = reason.code if isinstance(reason, Malformed) and reason.code != "J03" else "J04"
        yield len(lines) + 1, Malformed(code, "the last line has no line feed", len(lines) + 1)


def _repeated(line: bytes, known: dict[bytes, dict]) -> dict | None:
    """A line that says the same as an earlier one at another time, as the samples of a quiet queue do.

    at_ms sorts before every other member, so the rest of the line is canonical if it was canonical before.
    """
    stamp = _STAMP.match(line)
    value = known.get(line[stamp.end() :]) if stamp else None
    if value is None or abs(int(stamp[1])) > MAX_INT:
        return None
    return {**value, "at_ms": int(stamp[1])}


def _line(line: bytes, number: int, known: dict[bytes, dict]):
    try:
        if not line.strip():
            raise Malformed("J06" if not line.endswith(b"\r") else "J05", "blank line")
        if line.endswith(b"\r"):
            raise Malformed("J05", "line ends in CR LF")
        value = load_value(line)
        stamp = _STAMP.match(line)
        if stamp and isinstance(value, dict):
            known[line[stamp.end() :]] = value
        return value
    except Malformed as bad:
        return Malformed(bad.code, bad.message, number)


def _check_lines(data: bytes) -> None:
    if data.startswith(_BOM):
        raise Malformed("J01", "begins with a byte order mark")
    if b"\r\n" in data:
        raise Malformed("J05", "a line ends in CR LF")
    if _BLANK.search(data):
        raise Malformed("J06", "there is a blank line")
    if not data.endswith(b"\n"):
        raise Malformed("J04", "there is no final line feed")
