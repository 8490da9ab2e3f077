"""Every readable form of a text, for the leak scan: what it becomes when its encodings are undone.

Belongs to the scan and shares nothing with `views`, which does the same for the replacement: a mistake in one
must not hide in the other.
"""

import base64
import html
import re
import unicodedata
import zlib
from collections.abc import Iterator

MAX_FORMS = 500
MAX_UNPACKED = 256 * 1024 * 1024

_QUOTED = re.compile(
    r"(?:[%=][0-9A-F]{2}|%[0-9a-f]{2})+|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]{1,5}\}|\\x[0-9a-fA-F]{2}|\\[0-7]{3}|\\.|&(?:#\d+|#x[0-9a-fA-F]+|[a-z]+);"
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\0]")
# What is no digit of ASCII but one all the same.
_DIGIT = re.compile(r"(?![0-9])\d")
_RUN = re.compile(r"[A-Za-z0-9+/_-]{6,}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}")
_HEX = re.compile(r"[0-9a-fA-F]{8,}")
# What may stand between the parts of one encoded value: line breaks, the separators of a list or a dump.
_JOINTS = re.compile(r"[\s:,\"'\[\]]+")
_CODES = re.compile(r"(?:\d{2,3}[,\s]{1,3}){5,}\d{2,3}")


def forms(text: str, runs: set[str]) -> Iterator[tuple[str, str]]:
    """Yield (how it was reached, text) for the text and all that can be decoded out of it."""
    queue, seen = [("raw", text)], {text}
    for form, current in queue:
        yield form, current
        for step, decoded in _decodings(current, runs):
            if decoded not in seen:
                seen.add(decoded)
                queue.append((step if form == "raw" else f"{form}, {step}", decoded))
        if len(queue) > MAX_FORMS:
            yield "too deep", ""
            return


def _decodings(text: str, runs: set[str]) -> Iterator[tuple[str, str]]:
    """Yield each decoding of a text by one layer. `runs` are encoded runs that were already looked into."""
    if _QUOTED.search(text):
        yield "unescaped", _QUOTED.sub(_unquote, text)
    if not text.isascii() or "\0" in text:
        plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
        yield "normalised", _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit.group())), plain)
    codes = (re.findall(r"\d+", found) for found in _CODES.findall(text))
    yield "character codes", "\n".join("".join(chr(int(code)) for code in found) for found in codes)
    # Base64 may be wrapped; every beginning is tried, so joining lines costs nothing.
    fresh = {*_RUN.findall(text), *_RUN.findall(_JOINTS.sub("", text))} - runs
    runs |= fresh
    for step, pattern, beginnings, decode in _ENCODINGS:
        found = sorted(part for run in fresh for part in pattern.findall(run))
        for skip in range(beginnings):
            yield from _binary(step, [decode(part[skip:]) for part in found])


def _binary(step: str, decoded: list[bytes]) -> Iterator[tuple[str, str]]:
    """Yield decoded bytes as text: all in one, because there are thousands; then what bytes alone can be."""
    yield step, "\n".join(readable(data) for data in decoded if data)
    yield f"{step}, wide", "\n".join(readable(data.replace(b"\0", b"")) for data in decoded if b"\0" in data)
    # A raw digest is compared as the hexadecimal one that it is.
    yield f"{step}, digest", "\n".join(data.hex() for data in decoded if len(data) in (16, 20, 32, 64))
    packed = (data for data in decoded if data[:2] == b"\x1f\x8b" or data[:1] == b"\x78")
    yield f"{step}, inflated", "\n".join(readable(_inflated(data)) for data in packed)


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, MAX_UNPACKED)
    except zlib.error:
        return b""


def _unquote(match: re.Match[str]) -> str:
    quoted = match.group()
    if quoted[0] in "%=":
        return readable(bytes.fromhex(re.sub("[%=]", "", quoted)))
    if quoted[0] == "&":
        return html.unescape(quoted)
    if quoted[1] in "ux" and len(quoted) > 2:
        return chr(int(quoted[2:].strip("{}"), 16))
    if len(quoted) == 4:
        return chr(int(quoted[1:], 8) & 0xFF)
    return {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}.get(quoted[1], quoted[1])


def _b64(run: str) -> bytes:
    whole = run[: len(run) - (len(run) % 4 == 1)].translate(str.maketrans("-_", "+/"))
    return base64.b64decode(whole + "=" * (-len(whole) % 4))


def _b32(run: str) -> bytes:
    return base64.b32decode(run[: len(run) // 8 * 8])


def _unhex(run: str) -> bytes:
    return bytes.fromhex(run[: len(run) // 2 * 2])


def readable(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


# How it is called, what it is made of, how many beginnings are possible, and how to undo it.
_ENCODINGS = (
    ("base64-decoded", _RUN, 4, _b64),
    ("hex-decoded", _HEX, 2, _unhex),
    ("base32-decoded", _BASE32, 8, _b32),
)
