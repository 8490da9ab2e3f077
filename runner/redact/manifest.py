"""redaction-manifest.json: what was replaced where, by which rule and how often; never the value.

A SHA-256 of a file is a hash of what was taken out of it: who has the public file needs only to guess the
value, and a 12-digit account id is guessed in minutes. So a file's original digest is published only when a
guess would have to include a random value of 122 bits or more, or when there is nothing to guess.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass, field

from runner.records import canonical
from runner.redact import known as k

FORMAT, VERSION, NAME = "suc-redaction", 1, "redaction-manifest.json"
INDEX, LABEL = "index.json", "redactions.json"
WITHHELD = "the values taken out of this file could be guessed and tried against its digest"
# Random values: with one of them missing, a file's digest cannot be tried out. Stack ids are UUIDs made of
# time and place, and a secret may be a weak password, so neither counts.
UNGUESSABLE = frozenset((k.REQUEST, k.SIGNATURE))
# A port on loopback is guessed at once, and nobody is worse off.
HARMLESS = frozenset((k.ENDPOINT,))


@dataclass(frozen=True)
class Rewritten:
    """One file of the copy: its role, the original's digest (None: the original has no such file), its bytes.

    `replaced` counts by (pointer, rule).
    """

    role: str
    original_sha256: str | None
    data: bytes
    replaced: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def guessable(self) -> bool:
        """Whether the original digest would confirm a guess at what was taken out."""
        rules = {rule for _, rule in self.replaced}
        return bool(rules - HARMLESS) and not rules & UNGUESSABLE


def tells_its_index(files: dict[str, Rewritten]) -> bool:
    """Whether the original index's digest may be published.

    The index holds every file's digest, so its own says no less than the most telling of them.
    """
    return not any(file.guessable for file in files.values())


def build(folder: str, files: dict[str, Rewritten], index: Rewritten, tells_index: bool = True) -> bytes:
    """Return the manifest's bytes. `folder` is the redacted package's, `index` its rebuilt index.json.

    The index's original digest is withheld unless `tells_index` and the files allow it.
    """
    open_index = tells_index and tells_its_index(files)
    entries = [_entry(f"{folder}/{path}", file, not file.guessable) for path, file in files.items()]
    entries.append(_entry(f"{folder}/{INDEX}", index, open_index))
    return canonical(
        {"format": FORMAT, "version": VERSION, "files": sorted(entries, key=lambda entry: entry["path"])}
    )


def label(replaced: dict[str, int]) -> Rewritten:
    """Return the file that marks the copy as one, wherever it goes without its manifest."""
    said = {"format": FORMAT, "version": VERSION, "replaced": replaced}
    return Rewritten("redactions", None, canonical(said))


def _entry(path: str, file: Rewritten, told: bool) -> dict[str, object]:
    entry: dict[str, object] = {
        "path": path,
        "original_sha256": file.original_sha256 if told else None,
        "redacted_sha256": hashlib.sha256(file.data).hexdigest(),
        "replacements": [
            {"pointer": pointer, "rule": rule, "count": count}
            for (pointer, rule), count in sorted(file.replaced.items())
        ],
    }
    if file.original_sha256 is None:
        return {**entry, "added": True}
    return entry if told else {**entry, "withheld": WITHHELD}
