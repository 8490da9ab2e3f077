"""Q05: the driver says that the trial ended because nothing moved, and without an error.

Least evidence: trial.json.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import COMPLETE, Rule


def check(trial):
    if trial.document["ended_because"] != "quiescent" or trial.document["error"] is not None:
        yield breach(
            "Q05",
            f"the trial ended because of {trial.document['ended_because']}",
            trial.where / "ended_because",
            error=trial.document["error"],
        )


RULE = Rule("trial_ended", COMPLETE, frozenset({"document"}), check)
