"""Decoded views of a string, each character knowing where it lies in the raw string.

A value may stand in a string as it is, JSON-escaped or URL-encoded (any number of times, in any order), or
base64-encoded. Finding it needs the decoded text; replacing it needs the place in the raw one, so that every
other character stays as it was frozen.

    raw     a r n % 3 A a w s        starts  0 1 2 3 6 7 8 9
    view    a r n : a w s
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_ESCAPE = re.compile(r'(?:%[0-9A-Fa-f]{2})+|\\u[0-9A-Fa-f]{4}|\\["\\/bfnrt]')
_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# Runs shorter than this cannot hold a known value (names have four characters or more).
_RUN = re.compile(r"[A-Za-z0-9+/_-]{6,}={0,2}")
# Nobody encodes that often by accident; what hides deeper is left to the scan, which refuses it.
MAX_DEPTH = 32


class View(NamedTuple):
    """Decoded `text`; character i stands in the raw string from `starts[i]` up to `starts[i + 1]`."""

    text: str
    starts: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where text[start:end] lies in the raw string."""
        return self.starts[start], self.starts[end]


class Base64(NamedTuple):
    """A part of a text that decodes as base64: what it says, and how to write it anew."""

    start: int
    end: int
    text: str
    codec: str
    urlsafe: bool
    padded: bool

    def encode(self, text: str) -> str:
        """Return `text` in the same alphabet and padding as the part had."""
        data = text.encode(self.codec)
        encoded = (base64.urlsafe_b64encode(data) if self.urlsafe else base64.b64encode(data)).decode()
        return encoded if self.padded else encoded.rstrip("=")


def views(raw: str) -> Iterator[View]:
    """Yield the raw string as a view, then every further decoding of it."""
    view: View | None = View(raw, range(len(raw) + 1))
    for _ in range(MAX_DEPTH):
        if view is None:
            return
        yield view
        view = _decoded(view)


def texts(raw: str, seen: set[str]) -> Iterator[str]:
    """Yield every readable form of a string, base64 inside it included, but none that was `seen` before."""
    for view in views(raw):
        if view.text in seen:
            continue
        seen.add(view.text)
        yield view.text
        for part in base64_parts(view.text):
            yield from texts(part.text, seen)


def base64_parts(text: str) -> Iterator[Base64]:
    """Yield each run of base64 characters, decoded from each of its first four characters.

    The true beginning of an encoded value is unknown (`token-QUtJ...` is one run), and every beginning is
    congruent to one of these four.
    """
    for run in _RUN.finditer(text):
        body = run.group().rstrip("=")
        for skip in range(4):
            # One character past a multiple of four carries no byte; it stays where it is.
            end = len(body) - ((len(body) - skip) % 4 == 1)
            data = _b64(body[skip:end])
            if data:
                whole = end == len(body)
                stop = run.end() if whole else run.start() + end
                padded = whole and run.group().endswith("=")
                decoded, codec = _readable(data)
                urlsafe = "-" in body or "_" in body
                yield Base64(run.start() + skip, stop, decoded, codec, urlsafe, padded)


def _decoded(view: View) -> View | None:
    if not _ESCAPE.search(view.text):
        return None
    text: list[str] = []
    starts: list[int] = []
    at = 0
    for escape in _ESCAPE.finditer(view.text):
        text.append(view.text[at : escape.start()])
        starts.extend(view.starts[at : escape.start()])
        for character, offset in _characters(escape.group()):
            text.append(character)
            starts.append(view.starts[escape.start() + offset])
        at = escape.end()
    text.append(view.text[at:])
    starts.extend(view.starts[at:])
    return View("".join(text), starts)


def _characters(escape: str) -> Iterator[tuple[str, int]]:
    """Yield each character that an escape stands for, with its offset in the escape."""
    if escape.startswith("\\u"):
        yield chr(int(escape[2:], 16)), 0
    elif escape.startswith("\\"):
        yield _CONTROL.get(escape[1], escape[1]), 0
    else:
        text, codec = _readable(bytes.fromhex(escape.replace("%", "")))
        offset = 0
        for character in text:
            yield character, offset
            offset += 3 * len(character.encode(codec))


def _b64(body: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(body.replace("+", "-").replace("/", "_") + "=" * (-len(body) % 4))
    except binascii.Error:
        return b""


def _readable(data: bytes) -> tuple[str, str]:
    """Return the bytes as text, and the codec that gives them back."""
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"
