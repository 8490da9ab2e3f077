"""Q04, G07, G10: the request is finished, its events say so too, and its knowledge never left UNKNOWN.

Least evidence: a whole journal.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import COMPLETE, Rule, is_full

REASONS = {"response_received": "SUCCEEDED", "attempt_failed": "PROVIDER_REFUSED"}


def check(trial):
    state, finishes = trial.journal.request or {}, trial.journal.of_type("request_finished")
    status, reason = state.get("status"), state.get("reason")
    refund, approved = state.get("refund_request_id"), trial.request
    if state and approved and refund != approved["refund_request_id"]:
        yield breach("G07", f"REQUEST is of refund {refund}", None, expected=approved["refund_request_id"])
    if status == "FINISHED" or finishes:
        endings = {event.id: REASONS[event.type] for event in trial.journal.of_type(*REASONS)}
        agreed = [endings.get(event.cites) for event in finishes] == [reason] and status == "FINISHED"
        if not agreed or reason is None:
            sentence = f"REQUEST says {status} {reason}; there are {len(finishes)} request_finished events"
            yield breach("G07", sentence, None, seqs=[event.seq for event in finishes])
    else:
        yield breach("Q04", f"the request is {status or 'absent'}", None, trial_id=trial.trial_id)
    knowledge = state.get("effect_knowledge")
    doubts = trial.journal.of_type("caller_timeout_recorded", "outcome_unknown")
    if doubts and knowledge != "UNKNOWN":
        yield breach("G10", "REQUEST no longer says that the effect is unknown", None, **doubts[0].witness())
    elif finishes and knowledge not in ("KNOWN", "UNKNOWN"):
        yield breach("G10", f"REQUEST says {knowledge} of the effect", None, trial_id=trial.trial_id)


RULE = Rule("request_finished", COMPLETE, frozenset({"journal"}), check, is_full)
