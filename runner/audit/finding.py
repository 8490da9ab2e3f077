"""What an audit can say about a resource, and nothing else."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """PRESENT and UNKNOWN are never clean; a REMNANT is expected and goes away by itself."""

    PRESENT = "PRESENT"
    GONE = "GONE"
    UNKNOWN = "UNKNOWN"
    REMNANT = "REMNANT"


CLEAN = (Status.GONE, Status.REMNANT)
BY_NAME, BY_TAG, BY_TEMPLATE = "name", "tag", "template"


@dataclass(frozen=True)
class Seen:
    """What the service itself says of one resource. `expires_at_ms` is the latest end of a remnant."""

    status: Status
    reason: str
    expires_at_ms: int | None = None
    deleting: bool = False


@dataclass(frozen=True)
class Finding:
    """One resource, or a whole type when nothing of it is listed, as one pass saw it."""

    type: str
    identifier: str
    seen: Seen
    found_by: tuple[str, ...]

    @property
    def status(self) -> Status:
        """The status that counts."""
        return self.seen.status

    def also_by(self, way: str) -> "Finding":
        """Return the same finding, reached in one more way."""
        return self if way in self.found_by else replace(self, found_by=(*self.found_by, way))

    def as_json(self) -> dict[str, Any]:
        """Return the finding as it is frozen and printed."""
        return {
            "type": self.type,
            "identifier": self.identifier,
            "status": str(self.status),
            "reason": self.seen.reason,
            "expires_at_ms": self.seen.expires_at_ms,
            "found_by": list(self.found_by),
        }


def present(reason: str) -> Seen:
    """It is there."""
    return Seen(Status.PRESENT, reason)


def deleting(reason: str) -> Seen:
    """It is on its way out: not yet clean, so it is asked again."""
    return Seen(Status.PRESENT, reason, deleting=True)


def gone(reason: str) -> Seen:
    """The service knows nothing of it."""
    return Seen(Status.GONE, reason)


def unknown(reason: str) -> Seen:
    """The service did not say."""
    return Seen(Status.UNKNOWN, reason)


def remnant(reason: str, expires_at_ms: int | None) -> Seen:
    """It stays behind by design; None where nothing but a person or a bucket rule ends it."""
    return Seen(Status.REMNANT, reason, expires_at_ms)
