"""What a person sees while a run goes on: a live table on a terminal, plain lines elsewhere.

Everything goes to stderr, because stdout belongs to data. Rich respects NO_COLOR by itself. The same
picture is kept in the run's folder, for `watch` in another terminal.
"""

import threading
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from runner.clock import SystemClock
from runner.live.picture import Picture, TrialRow
from runner.live.view import render
from runner.places import runs_dir
from runner.trials.trial import Trial

REFRESH_PER_S = 4


class Progress:
    """Shows trials, what each waits for, and the timeline as it happens. Thread-safe."""

    def __init__(self, console: Console, clock: SystemClock, quiet: bool = False):
        self._console = console
        self._clock = clock
        self._quiet = quiet
        self._lock = threading.RLock()
        self._began = clock.monotonic()
        self._picture = Picture(clock.now_ms())
        self._last_wait: dict[str, str] = {}
        self._live: Live | None = None

    def __enter__(self) -> "Progress":
        if self._console.is_terminal and not self._quiet:
            # The picture is drawn anew at each refresh, so its clock moves while nothing happens.
            self._live = Live(
                console=self._console,
                refresh_per_second=REFRESH_PER_S,
                transient=True,
                get_renderable=self._drawn,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._picture.ended = True
            self._save()
        if self._live:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Print one line that stays."""
        self._line(f"{self._elapsed()}  {text}", stays=True)

    def started(self, trial: Trial) -> None:
        """A trial has begun."""
        with self._lock:
            self._row(trial)
        self.say(f"{_label(trial)}: started as {trial.trial_id}")

    def ended(self, trial: Trial) -> None:
        """A trial has ended, in whatever way."""
        with self._lock:
            row = self._row(trial)
            row.now, row.ended = f"ended: {trial.ended_because}", True
        self.say(
            f"{_label(trial)}: ended, {trial.ended_because}" + (f" ({trial.error})" if trial.error else "")
        )

    def note(self, trial: Trial, event: dict[str, Any]) -> None:
        """A new journal event was seen."""
        attempt = f" attempt {event['attempt']}" if "attempt" in event else ""
        text = f"{event['seq']:>3} {event['source']:<8} {event['type']}{attempt}"
        with self._lock:
            self._row(trial).events += 1
            self._picture.add_event(f"{self._elapsed()}  {trial.trial_id.rsplit('-', 1)[-1]:<3} {text}")
            self._line(f"{self._elapsed()}  {_label(trial)}: {text}", stays=False)

    def waiting(self, trial: Trial, text: str) -> None:
        """What the trial waits for now. Plain output repeats it only when its words change."""
        with self._lock:
            self._row(trial).now = text
            words = "".join(c for c in text if not c.isdigit())
            changed = self._last_wait.get(trial.trial_id) != words
            self._last_wait[trial.trial_id] = words
            if changed:
                self._line(f"{self._elapsed()}  {_label(trial)}: waiting for {text}", stays=False)
            else:
                self._save()

    def _row(self, trial: Trial) -> TrialRow:
        """The trial's row, with what was last sampled of its queues."""
        self._picture.run_id = trial.run_id
        row = self._picture.trials.setdefault(trial.trial_id, TrialRow(trial.scenario, trial.variant))
        source, dlq = _last_sample(trial, "queue_source"), _last_sample(trial, "queue_dlq")
        if source:
            row.visible = int(source["ApproximateNumberOfMessages"])
            row.in_flight = int(source["ApproximateNumberOfMessagesNotVisible"])
        if dlq:
            row.dead = int(dlq["ApproximateNumberOfMessages"])
        return row

    def _line(self, text: str, stays: bool) -> None:
        """Keep a line of the plain output; on a live terminal only those that stay are printed."""
        with self._lock:
            self._picture.add_line(text)
            self._save()
        if not self._quiet and (stays or not self._live):
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _save(self) -> None:
        folder = self._folder()
        if folder:
            self._picture.save(folder)

    def _folder(self) -> Path | None:
        return runs_dir() / self._picture.run_id if self._picture.run_id else None

    def _drawn(self) -> Any:
        with self._lock:
            return render(self._picture, self._clock.now_ms())

    def _elapsed(self) -> str:
        return f"{self._clock.monotonic() - self._began:7.1f} s"


def _label(trial: Trial) -> str:
    return f"{trial.scenario}/{trial.variant}"


def _last_sample(trial: Trial, read: str) -> dict[str, str]:
    """The attributes of the newest good sample of one queue, empty if there is none."""
    for line in reversed(trial.queues.lines if trial.queues else []):
        if line["read"] == read and "response" in line:
            return line["response"]["Attributes"]
    return {}
