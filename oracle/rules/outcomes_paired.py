"""G08: a dispatch has at most one outcome, and an outcome cites a dispatch.

A dispatch without an outcome is unknown, never "not attempted" (CASES D01). Least evidence: a whole journal.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.journal import OUTCOMES
from oracle.rules.base import COMPLETE, Rule


def check(trial):
    dispatches = {event.id for event in trial.dispatches()}
    for outcome in trial.journal.of_type(*OUTCOMES):
        if outcome.cites not in dispatches:
            yield breach("G08", f"{outcome.type} cites no dispatch", None, **outcome.witness())
    for dispatch in trial.dispatches():
        outcomes = trial.outcomes(dispatch)
        if len(outcomes) > 1:
            yield breach(
                "G08",
                f"the dispatch has {len(outcomes)} outcomes",
                None,
                **dispatch.witness(),
                outcomes=[event.seq for event in outcomes],
            )


RULE = Rule("outcomes_paired", COMPLETE, frozenset({"journal"}), check)
