"""Strict reading of JSON from outside: no duplicate keys, no floats, exact keys, whole minor units."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

_CURRENCY = re.compile(r"[A-Z]{3}")


class Malformed(ValueError):
    """What came from outside is not what it must be; the message names the field, expected and found."""


def load_object(text: str | bytes) -> dict[str, Any]:
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_float=_refuse_number, parse_constant=_refuse_number
        )
    except Malformed:
        raise
    except (ValueError, RecursionError) as error:
        raise Malformed(f"expected JSON, found {type(error).__name__}") from error
    if not isinstance(value, dict):
        raise Malformed(f"expected a JSON object, found {type(value).__name__}")
    return value


def exact_keys(subject: str, value: object, keys: Iterable[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Malformed(f"{subject}: expected an object, found {type(value).__name__}")
    if set(value) != set(keys):
        raise Malformed(f"{subject}: expected the keys {sorted(keys)}, found {sorted(map(str, value))}")
    return value


def text(value: object, name: str) -> str:
    # Printable also keeps lone surrogates out, which no later encoder could write.
    if not isinstance(value, str) or not value or not value.isprintable():
        raise Malformed(f"{name}: expected a printable text, found {value!r:.80}")
    return value


def whole(value: object, name: str) -> int:
    """A positive whole number. True is an int to Python, and is refused all the same."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise Malformed(f"{name}: expected a positive whole number, found {value!r:.80}")
    return value


def currency(value: object, name: str) -> str:
    if not isinstance(value, str) or not _CURRENCY.fullmatch(value):
        raise Malformed(f"{name}: expected three capital letters, found {value!r:.80}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Malformed("expected unique keys, found a repeated one")
    return value


def _refuse_number(found: str) -> NoReturn:
    raise Malformed(f"expected whole numbers, found {found}")
