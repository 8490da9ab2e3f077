"""A finding: one breached clause with the smallest witness that shows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle.codes import CODES


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    message: str
    witness: dict = field(default_factory=dict)

    @property
    def severity(self) -> str:
        return CODES[self.code].consequence

    def as_json(self) -> dict:
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "witness": self.witness,
        }


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the package: a file and a JSON pointer (in .jsonl the first step is the line number)."""

    path: str
    pointer: str = ""

    def __truediv__(self, step) -> Where:
        return Where(self.path, f"{self.pointer}/{_escape(step)}")

    def within(self, pointer: str) -> Where:
        """The place that a pointer names, seen from here."""
        return Where(self.path, self.pointer + pointer)

    def as_json(self) -> dict:
        return {"path": self.path, "pointer": self.pointer}


def _escape(step) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def breach(code: str, message: str, where: Where | None = None, **facts) -> Finding:
    """A finding at a place, with the facts (ids, sequence numbers) that witness it."""
    return Finding(code, message, {**(where.as_json() if where else {}), **facts})
