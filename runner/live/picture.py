"""`live.json`: the picture of a run in progress, for another terminal to read.

The run writes it beside its evidence, whole or not at all, each time something changes. It is for eyes
only: nothing reads it but `watch`, and neither a verdict nor `resume` depends on it.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

NAME = "live.json"
FORMAT, VERSION = "suc-live", 1
LINES_KEPT, EVENTS_KEPT = 500, 12


@dataclass
class TrialRow:
    """One trial as it stands. Counts are SQS's approximate ones; None is not sampled yet."""

    scenario: str
    variant: str
    now: str = "starting"
    events: int = 0
    visible: int | None = None
    in_flight: int | None = None
    dead: int | None = None
    ended: bool = False


@dataclass
class Picture:
    """What a person sees of a run. `lines` are numbered from `first_line`, so a watcher misses none."""

    began_at_ms: int
    run_id: str = ""
    pid: int = field(default_factory=os.getpid)
    ended: bool = False
    trials: dict[str, TrialRow] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    first_line: int = 0

    def add_event(self, line: str) -> None:
        """Keep the last few events."""
        self.events = [*self.events, line][-EVENTS_KEPT:]

    def add_line(self, line: str) -> None:
        """Keep the last lines of the plain output."""
        self.lines.append(line)
        if len(self.lines) > LINES_KEPT:
            self.first_line += len(self.lines) - LINES_KEPT
            self.lines = self.lines[-LINES_KEPT:]

    def save(self, folder: Path) -> None:
        """Write the picture into the run's folder; one that is not there is not made."""
        fresh = folder / f"{NAME}.new"
        try:
            fresh.write_text(json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}))
            fresh.replace(folder / NAME)
        except OSError:
            # A picture that cannot be written must not end a run.
            return


def load(folder: Path) -> Picture | None:
    """Return the picture in a run's folder, or None if there is none of this version."""
    try:
        document: Any = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict):
        return None
    if (document.pop("format", None), document.pop("version", None)) != (FORMAT, VERSION):
        return None
    try:
        rows = {name: TrialRow(**row) for name, row in document.pop("trials").items()}
        return Picture(trials=rows, **document)
    except (AttributeError, KeyError, TypeError):
        return None  # other hands than ours wrote it
