"""N01: wall clocks that contradict the sequence, or a negative duration, are told to the reader and decide
nothing.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import NOTES, Rule


def check(trial):
    known = {event.id: event for event in trial.journal.events}
    for event in trial.journal.events:
        cause = known.get(event.cites)
        if cause is not None and event.row["at_ms"] < cause.row["at_ms"]:
            yield breach(
                "N01",
                f"{event.type} is {cause.row['at_ms'] - event.row['at_ms']} ms before its cause by the clock",
                None,
                **event.witness(),
            )
            return
    closed = trial.journal.of_type("trial_closed")
    early = [
        snapshot for snapshot in trial.ledger.snapshots if closed and snapshot.at_ms < closed[-1].row["at_ms"]
    ]
    if early:
        yield breach(
            "N01", "by the clock a ledger snapshot is before trial_closed", None, snapshot=early[0].number
        )


RULE = Rule("clocks", NOTES, frozenset(), check)
