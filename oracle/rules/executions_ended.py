"""H07: the durable variant did run as a durable execution, and (by decoding, H01-H06) all of them ended,
seen in full.

Least evidence: whole versions, listings, executions and histories.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import COMPLETE, Rule


def check(trial):
    if not trial.durable.own:
        yield breach("H07", "no execution is this trial's", None, listed=len(trial.durable.executions))


RULE = Rule(
    "executions_ended",
    COMPLETE,
    frozenset({"durable"}),
    check,
    lambda trial: trial.variant == "durable" and not trial.claims_probe,
)
