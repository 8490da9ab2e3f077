"""Replacing known values by consistent pseudonyms, on parsed strings, keys included.

Pseudonyms are made of letters, digits, hyphens, dots and slashes alone, so they need no escaping in any layer
of JSON or URL encoding: they go straight into the raw string, and no other character of it changes.
"""

from collections import Counter
from typing import Any

from runner.errors import EXIT_NOT_CLEAN, LabError
from runner.redact import known as k
from runner.redact.known import Known
from runner.redact.views import Base64, View, base64_parts, views

SHAPES = {
    k.ACCOUNT: "9999{:08d}",
    k.ACCESS_KEY: "{prefix}-REDACTED-{}",
    k.SECRET: "secret-{}",
    k.SIGNATURE: "signature-{}",
    k.STACK: "00000000-0000-4000-8000-{:012d}",
    k.REQUEST: "00000000-0000-4000-9000-{:012d}",
    k.PATH: "/path-{}",
    k.ENDPOINT: "endpoint-{}.invalid",
    k.USER: "user-{}",
    k.HOST: "host-{}",
}
# Each round removes every value it sees; more than a few mean that replacing makes new ones.
MAX_ROUNDS = 32


class Refused(LabError):
    """The package cannot be made public; nothing was written."""

    exit_code = EXIT_NOT_CLEAN


class Pseudonyms:
    """Gives each value its pseudonym: a counter by rule, in order of first appearance.

    The public copy shows that order anyway, so a pseudonym tells nothing about its value.
    """

    def __init__(self, known: Known):
        self._known = known
        self._next: Counter[str] = Counter()
        self.given: dict[str, str] = {}

    def go_on_from(self, earlier: "Pseudonyms") -> None:
        """Keep what another copy gave, so that one value has one pseudonym in both."""
        self._next.update(earlier._next)
        self.given.update(earlier.given)

    def of(self, rule: str, value: str) -> str:
        """Return the pseudonym of a value (in its identity form)."""
        if value not in self.given:
            self.given[value] = self._fresh(rule, value)
        return self.given[value]

    def _fresh(self, rule: str, value: str) -> str:
        # A package that was redacted before has pseudonyms for values; the two must not be mixed up.
        for _ in range(len(self._known.values) + 1):
            self._next[rule] += 1
            name = SHAPES[rule].format(self._next[rule], prefix=value[:4].upper())
            if not self._known.find(name):
                return name
        raise Refused(f"no pseudonym for {rule} is free", expected="one that is no known value", found="none")


class Redactor:
    """Replaces known values in strings and JSON values, and counts what it replaced."""

    def __init__(self, known: Known):
        self.known = known
        self.pseudonyms = Pseudonyms(known)
        self._done: dict[str, tuple[str, Counter[str]]] = {}

    def text(self, raw: str) -> tuple[str, Counter[str]]:
        """Return the string without known values, and how many were replaced by rule."""
        if raw not in self._done:
            self._done[raw] = self._text(raw)
        return self._done[raw]

    def _text(self, raw: str) -> tuple[str, Counter[str]]:
        counts: Counter[str] = Counter()
        for _ in range(MAX_ROUNDS):
            changed = self._round(raw, counts)
            if changed == raw:
                return raw, counts
            raw = changed
        raise Refused(
            "a string could not be redacted",
            expected="an end to its known values",
            found=f"{MAX_ROUNDS} rounds",
        )

    def _round(self, raw: str, counts: Counter[str]) -> str:
        """Replace what any view shows, the longest first; plain and escaped values before base64."""
        seen = list(views(raw))
        hits = [(*view.span(h.start, h.end), h) for view in seen for h in self.known.find(view.text)]
        if hits:
            kept = _apart(hits)
            counts.update(hit.rule for _, _, hit in kept)
            return _splice(raw, [(a, b, self.pseudonyms.of(hit.rule, hit.value)) for a, b, hit in kept])
        for view in seen:
            for part in base64_parts(view.text):
                text, inner = self.text(part.text)
                if inner:
                    counts.update(inner)
                    return _splice(raw, [_encoded(raw, view, part, text)])
        return raw

    def value(self, value: Any, pointer: str, log: Counter[tuple[str, str]]) -> Any:
        """Return a JSON value without known values; `log` counts (pointer, rule), pointers redacted too."""
        if isinstance(value, str):
            return self._logged(value, pointer, log)
        if isinstance(value, list):
            return [self.value(inner, f"{pointer}/{i}", log) for i, inner in enumerate(value)]
        if isinstance(value, dict):
            return self._object(value, pointer, log)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**9:
            text = self._logged(str(value), pointer, log)
            return int(text) if text.lstrip("-").isdigit() else text
        return value

    def _object(self, value: dict[str, Any], pointer: str, log: Counter[tuple[str, str]]) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        for key in sorted(value):
            new_key, counts = self.text(key)
            place = f"{pointer}/{new_key.replace('~', '~0').replace('/', '~1')}"
            log.update({(place, rule): count for rule, count in counts.items()})
            if new_key in changed:
                raise Refused(
                    "two keys of one object became one", expected="keys that stay apart", found=place
                )
            changed[new_key] = self.value(value[key], place, log)
        return changed

    def _logged(self, text: str, pointer: str, log: Counter[tuple[str, str]]) -> str:
        new, counts = self.text(text)
        log.update({(pointer, rule): count for rule, count in counts.items()})
        return new


def _encoded(raw: str, view: View, part: Base64, text: str) -> tuple[int, int, str]:
    start, end = view.span(part.start, part.end)
    encoded = part.encode(text)
    if "%" in raw[start:end]:
        encoded = encoded.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    return start, end, encoded


def _apart(hits: list[tuple[int, int, k.Hit]]) -> list[tuple[int, int, k.Hit]]:
    """Return hits that do not overlap, in order; of those that do the longest, so that no rest stays."""
    kept: list[tuple[int, int, k.Hit]] = []
    for start, end, hit in sorted(hits, key=lambda h: (h[0] - h[1], h[0])):
        if all(end <= a or b <= start for a, b, _ in kept):
            kept.append((start, end, hit))
    return sorted(kept)


def _splice(raw: str, changes: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(changes, reverse=True):
        raw = raw[:start] + new + raw[end:]
    return raw
