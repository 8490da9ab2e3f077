"""G09: no dispatch can still commit: each was received at the provider and ended there, or was definitely
refused.

Without this a commit could follow the last snapshot (CASES D22). Least evidence: a whole journal.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.journal import DEFINITE_CODES
from oracle.rules.base import COMPLETE, Rule


def check(trial):
    journal = trial.journal
    if not trial.dispatches():
        yield breach("G09", "there is no dispatch", None, trial_id=trial.trial_id)
    for dispatch in trial.dispatches():
        refused = any(
            outcome.row["detail"]["code"] in DEFINITE_CODES
            for outcome in journal.citing(dispatch, "attempt_failed")
        )
        received = journal.citing(dispatch, "provider_request_received")
        if refused and journal.citing(dispatch, "provider_commit_confirmed"):
            yield breach("G09", "the dispatch was refused and committed", None, **dispatch.witness())
            continue
        if refused or (received and _ended(journal, dispatch)):
            continue
        state = "never ended at" if received else "never reached"
        yield breach("G09", f"the dispatch {state} the provider", None, **dispatch.witness())


def _ended(journal, dispatch) -> bool:
    """Answered or given up (citing the commit), or released (citing this dispatch's release)."""
    for commit in journal.citing(dispatch, "provider_commit_confirmed"):
        if journal.citing(commit, "response_sent", "barrier_expired"):
            return True
    # A provider that answers a repeat from an earlier commit cites that commit; the caller's response
    # closes it.
    if journal.citing(dispatch, "response_received"):
        return True
    timeouts = journal.citing(dispatch, "caller_timeout_recorded")
    releases = [release for timeout in timeouts for release in journal.citing(timeout, "release_signalled")]
    return any(journal.citing(release, "response_released") for release in releases)


RULE = Rule("dispatches_settled", COMPLETE, frozenset({"journal"}), check)
