"""The one place where the runner touches real time and real randomness."""

import secrets
import threading
import time
from datetime import UTC, datetime


class SystemClock:
    """Wall clock for display, monotonic clock for durations, and a sleep that `stop` ends early."""

    def __init__(self, stop: threading.Event | None = None):
        self._stop = stop or threading.Event()

    def now_ms(self) -> int:
        """Wall clock, milliseconds since the epoch. Never used to order facts (CASES D31)."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds on this host's monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; returns early when the run is being interrupted."""
        self._stop.wait(seconds)

    def pause(self, seconds: float) -> None:
        """Wait the whole time: between reads of something that ends by itself, interrupted or not."""
        time.sleep(seconds)


def new_event_id() -> str:
    """Return a fresh id for a journal event: 32 hex digits."""
    return secrets.token_hex(16)


def new_run_id() -> str:
    """Return a fresh run id: UTC start time and six random hex digits."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ-") + secrets.token_hex(3)
