"""Where things are: the project, its runs, and the one folder of our own state."""

import os
from pathlib import Path

from runner.errors import UsageError

PROJECT_ROOT = Path(__file__).resolve().parent.parent


def runs_dir() -> Path:
    """Return where runs are kept: `runs/`, ignored by git; SUC_RUNS_DIR moves it (the tests do)."""
    return Path(os.environ.get("SUC_RUNS_DIR") or PROJECT_ROOT / "runs")


def demand_runs_dir() -> None:
    """Refuse, before anything is started, when a run could not be kept. Raises UsageError."""
    place = runs_dir()
    nearest = next(folder for folder in (place, *place.resolve().parents) if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise UsageError(
            f"runs cannot be kept in {place}",
            expected="a folder that can be written to",
            found=f"{nearest} is " + ("not writable" if nearest.is_dir() else "a file"),
            next_step="make it one, or name another in SUC_RUNS_DIR",
        )


def state_dir() -> Path:
    """Return the one ignored folder of our state; SUC_STATE_DIR moves it (the tests do)."""
    return Path(os.environ.get("SUC_STATE_DIR") or PROJECT_ROOT / ".suc")
