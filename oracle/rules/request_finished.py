"""Q04, G07, G10: the request is finished, its events say so too, and its knowledge never left UNKNOWN.

Least evidence: a whole journal.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import COMPLETE, Rule, is_full


def check(trial):
    state, finishes = trial.journal.request or {}, trial.journal.of_type("request_finished")
    endings = {event.id for event in trial.journal.of_type("response_received", "attempt_failed")}
    finished = state.get("status") == "FINISHED"
    if finished != (len(finishes) == 1) or any(event.cites not in endings for event in finishes):
        yield breach(
            "G07",
            f"REQUEST says {state.get('status')}, and there are {len(finishes)} request_finished events",
            None,
            seqs=[event.seq for event in finishes],
        )
    elif not finished:
        yield breach("Q04", f"the request is {state.get('status', 'absent')}", None, trial_id=trial.trial_id)
    doubts = trial.journal.of_type("caller_timeout_recorded", "outcome_unknown")
    if doubts and state.get("effect_knowledge") != "UNKNOWN":
        yield breach("G10", "REQUEST no longer says that the effect is unknown", None, **doubts[0].witness())


RULE = Rule("request_finished", COMPLETE, frozenset({"journal"}), check, is_full)
