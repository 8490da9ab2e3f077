"""N01: clocks that contradict the sequence and negative durations are told to the reader and decide nothing.

Every source has its own clock (CASES D31); a second of skew is ordinary and not worth a note.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import NOTES, Rule

TOLERATED_MS = 1_000


def check(trial):
    latest = None
    for event in trial.journal.events:
        if latest is not None and event.row["at_ms"] < latest.row["at_ms"] - TOLERATED_MS:
            behind = latest.row["at_ms"] - event.row["at_ms"]
            sentence = f"by the clock {event.type} is {behind} ms before event {latest.seq}"
            yield breach("N01", sentence, None, **event.witness())
            return
        if latest is None or event.row["at_ms"] > latest.row["at_ms"]:
            latest = event
        if event.row.get("elapsed_ms", 0) < 0:
            yield breach("N01", f"{event.type} has a negative duration", None, **event.witness())
            return
    early = [s for s in trial.ledger.snapshots if latest and s.at_ms < latest.row["at_ms"] - TOLERATED_MS]
    if early:
        sentence = "by the clock a ledger snapshot was taken before the journal's end"
        yield breach("N01", sentence, None, snapshot=early[0].number)


RULE = Rule("clocks", NOTES, frozenset(), check)
