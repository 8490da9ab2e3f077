"""What a person sees while a run goes on: a live table on a terminal, plain lines elsewhere.

Everything goes to stderr, because stdout belongs to data. Rich respects NO_COLOR by itself.
"""

import threading
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from runner.clock import SystemClock

if TYPE_CHECKING:
    from runner.trial import Trial

EVENTS_SHOWN = 12


class Progress:
    """Shows trials, what each waits for, and the timeline as it happens. Thread-safe."""

    def __init__(self, console: Console, clock: SystemClock, quiet: bool = False):
        self._console = console
        self._clock = clock
        self._quiet = quiet
        self._lock = threading.Lock()
        self._began = clock.monotonic()
        self._rows: dict[str, list[str]] = {}
        self._events: list[str] = []
        self._last_wait: dict[str, str] = {}
        self._live: Live | None = None

    def __enter__(self) -> "Progress":
        if self._console.is_terminal and not self._quiet:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Print one line that stays."""
        if not self._quiet:
            self._console.print(f"{self._elapsed()}  {text}", markup=False, highlight=False, soft_wrap=True)

    def started(self, trial: "Trial") -> None:
        """A trial has begun."""
        with self._lock:
            self._rows[trial.trial_id] = [trial.scenario, trial.variant, "starting"]
        self.say(f"{_label(trial)}: started as {trial.trial_id}")
        self._refresh()

    def ended(self, trial: "Trial") -> None:
        """A trial has ended, in whatever way."""
        with self._lock:
            self._rows[trial.trial_id] = [trial.scenario, trial.variant, f"ended: {trial.ended_because}"]
        self.say(
            f"{_label(trial)}: ended, {trial.ended_because}" + (f" ({trial.error})" if trial.error else "")
        )
        self._refresh()

    def note(self, trial: "Trial", event: dict[str, Any]) -> None:
        """A new journal event was seen."""
        attempt = f" attempt {event['attempt']}" if "attempt" in event else ""
        line = f"{_label(trial)}: {event['seq']:>3} {event['source']:<8} {event['type']}{attempt}"
        with self._lock:
            self._events.append(f"{self._elapsed()}  {line}")
        if not self._live:
            self.say(line)
        self._refresh()

    def waiting(self, trial: "Trial", text: str) -> None:
        """What the trial waits for now. Plain output repeats it only when its words change."""
        with self._lock:
            self._rows[trial.trial_id] = [trial.scenario, trial.variant, text]
            words = "".join(c for c in text if not c.isdigit())
            changed = self._last_wait.get(trial.trial_id) != words
            self._last_wait[trial.trial_id] = words
        if changed and not self._live:
            self.say(f"{_label(trial)}: waiting for {text}")
        self._refresh()

    def _refresh(self) -> None:
        if not self._live:
            return
        with self._lock:
            table = Table(expand=False, title=f"trials at {self._elapsed().strip()}")
            for heading in ("Trial", "Scenario", "Variant", "Now"):
                table.add_column(heading)
            for trial_id, row in self._rows.items():
                table.add_row(trial_id.rsplit("-", 1)[-1], *row)
            events = [Text(line) for line in self._events[-EVENTS_SHOWN:]]
        self._live.update(Group(*events, table))

    def _elapsed(self) -> str:
        return f"{self._clock.monotonic() - self._began:7.1f} s"


def _label(trial: "Trial") -> str:
    return f"{trial.scenario}/{trial.variant}"
