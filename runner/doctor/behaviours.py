"""The vocabulary of a look at the ground: a behaviour, a probe that shows some, and what it works with."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

# Longer than any wait of a probe that goes well; eventual things on AWS take seconds, not minutes.
WAIT_LIMIT_S = 90


class Result(StrEnum):
    """What a probe says of one behaviour."""

    HOLDS = "HOLDS"
    DIFFERS = "DIFFERS"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Behaviour:
    """One thing that trials stand on, as AWS documents it. `relied_on` is false for what none needs."""

    name: str
    expected: str
    relied_on: bool = True


@dataclass(frozen=True)
class Told:
    """Whether the behaviour was seen, and what was seen."""

    holds: bool
    observed: str


@dataclass(frozen=True)
class Probe:
    """A short story that shows some behaviours; `run` yields one Told for each, in their order."""

    behaviours: tuple[Behaviour, ...]
    run: Callable[["Ground"], Iterator[Told]]


@dataclass(frozen=True)
class Ground:
    """What a probe works with: clients, the throw-away resources, a clock."""

    client: Callable[..., Any] = field(repr=False)
    outputs: dict[str, str]
    clock: Any

    def fresh(self) -> str:
        """Return an id that nothing else uses."""
        return uuid.uuid4().hex

    def until(self, ready: Callable[[], Any], limit_s: float = WAIT_LIMIT_S, pause_s: float = 0.2) -> Any:
        """Return what `ready` returns once it is true, else its last value when the limit is over."""
        end = self.clock.monotonic() + limit_s
        while not (value := ready()) and self.clock.monotonic() < end:
            self.clock.sleep(pause_s)
        return value

    def marks(self, trial: str) -> list[str]:
        """Return what the functions marked under an id, in order."""
        item = self.client("dynamodb").get_item(
            TableName=self.outputs["Table"],
            Key={"trial_id": {"S": trial}, "entry": {"S": "MARKS"}},
            ConsistentRead=True,
        )
        return [mark["S"] for mark in item.get("Item", {}).get("marks", {"L": []})["L"]]
