"""The state log of a run: what it was about to do, on disk before it did it.

    state written + fsynced  ->  outward action  ->  next state written + fsynced  ->  ...

A killed runner leaves a log whose last entry names the one action that may or may not have happened;
every earlier one has. `resume` reads nothing else to know how far a run came. The log only grows; a
last line without its line feed was never finished, so its action was never begun.

Each state is also a crash window (tests kill the runner there): SUC_CRASH_AT=<state>[:before|after][:n]
makes the log SIGKILL its own process at the n-th entry of that state, before or after writing it.
"""

import fcntl
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.disk import sync_folder, whole_lines
from runner.errors import LabError, UsageError
from runner.records import canonical

CRASH_AT = "SUC_CRASH_AT"


class State:
    """The states of a run, in the order of its life. Each names what comes next or was just done."""

    CREATED = "created"
    LEASING = "leasing"
    LEASED = "leased"
    WARMING = "warming"
    WARMED = "warmed"
    PROBE_INVOKING = "probe_invoking"
    PROBE_INVOKED = "probe_invoked"
    TRIAL_OPENING = "trial_opening"
    TRIAL_OPENED = "trial_opened"
    ARMED = "armed"
    SEND_STARTED = "send_started"
    SENDING = "sending"
    SENT = "sent"
    WAITING = "waiting"
    CLOSING = "closing"
    CLOSED = "closed"
    COLLECTING = "collecting"
    FREEZING = "freezing"
    PUBLISHING = "publishing"
    FROZEN = "frozen"
    JUDGING = "judging"
    JUDGED = "judged"
    ENDED = "ended"
    # Ways to end without a package, each with its reason.
    REFUSED = "refused"
    ABANDONED = "abandoned"
    # Not a step of its own: another process has taken the run up.
    RESUMED = "resumed"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Return every state."""
        return tuple(v for k, v in vars(cls).items() if k.isupper())


FINAL = {State.ENDED, State.REFUSED, State.ABANDONED}


class StateLog:
    """The open state log of one run. Its folder is locked for as long as the process lives."""

    def __init__(self, run_dir: Path, now_ms: Callable[[], int]):
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._crash = Crash.armed()
        # The kernel drops this lock with the process, however that dies, so a run is never
        # resumed while it still lives.
        self._guard = (run_dir / "lock").open("w")
        try:
            fcntl.flock(self._guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._guard.close()
            raise UsageError(
                f"run {run_dir.name} is still running",
                expected="a run that no process works on",
                found="its folder is locked by a living one",
                next_step="wait for it, or interrupt it with Ctrl-C",
            ) from error
        path = run_dir / "state.jsonl"
        whole = whole_lines(path)
        self._file = path.open("r+b" if path.exists() else "w+b")
        sync_folder(run_dir)
        self._file.truncate(len(whole))
        self._file.seek(len(whole))
        self._count = whole.count(b"\n")

    def write(self, state: str, **facts: Any) -> None:
        """Append one entry and return only when it is on the disk."""
        with self._lock:
            self._crash.maybe(state, "before")
            self._count += 1
            self._file.write(canonical({"n": self._count, "at_ms": self._now_ms(), "state": state, **facts}))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._crash.maybe(state, "after")

    def close(self) -> None:
        """Let go of the run."""
        self._file.close()
        self._guard.close()


class Crash:
    """A planned death: at the n-th entry of a state, before or after it is written. Tests only."""

    def __init__(self, state: str = "", side: str = "after", nth: int = 1):
        self._state, self._side, self._left = state, side, nth

    @classmethod
    def armed(cls) -> "Crash":
        """Return the death that SUC_CRASH_AT asks for, or one that never comes."""
        words = os.environ.get(CRASH_AT, "").split(":")
        numbers = [int(word) for word in words if word.isdigit()]
        return cls(words[0], "before" if "before" in words else "after", numbers[0] if numbers else 1)

    def maybe(self, state: str, side: str) -> None:
        """Die if this is the place."""
        if (state, side) == (self._state, self._side):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def read(run_dir: Path) -> list[dict[str, Any]]:
    """Return the entries of a run's state log, oldest first; none if it has no log.

    Raises LabError when a finished line is no entry: only other hands than ours make one.
    """
    try:
        entries = [json.loads(line) for line in whole_lines(run_dir / "state.jsonl").splitlines()]
    except (OSError, ValueError) as error:
        raise _damaged(run_dir, str(error)) from error
    if not all(isinstance(entry, dict) and isinstance(entry.get("state"), str) for entry in entries):
        raise _damaged(run_dir, "a line that names no state")
    return entries


def ended(entries: list[dict[str, Any]]) -> bool:
    """Whether a run's state log says that nothing is left to do."""
    return bool(entries) and entries[-1]["state"] in FINAL


def _damaged(run_dir: Path, found: str) -> LabError:
    return LabError(
        f"the state log of run {run_dir.name} cannot be read",
        expected="one JSON object with a state a line",
        found=found,
        next_step=f"restore {run_dir / 'state.jsonl'}; nothing else knows how far the run came",
    )


def lives(run_dir: Path) -> bool:
    """Whether a process works on the run: it alone holds the lock of the run's folder."""
    try:
        with (run_dir / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
