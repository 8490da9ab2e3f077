"""Tells a trial as a paragraph, "let ... then ... however ...", over its timeline."""

from __future__ import annotations

from oracle.belief import effect_knowledge
from oracle.text import money, shown
from oracle.timeline import timeline
from oracle.trial import Trial
from oracle.verdict import FAIL, PASS, TrialResult


def explain(trial: Trial, result: TrialResult) -> str:
    """The story of one trial: heading, paragraph, timeline, and what stood in the way of a verdict."""
    lines = [
        shown(f"{trial.trial_id}: {trial.scenario}, {trial.variant}"),
        "",
        shown(paragraph(trial, result)),
        "",
        *map(shown, timeline(trial)),
    ]
    reasons = [shown(f"  {found.code} {found.severity}: {found.message}") for found in result.findings]
    unrun = [
        f"  not judged: {name} ({status})"
        for name, status in result.rules.items()
        if status not in ("held", "broken", "not applicable")
    ]
    if reasons or unrun:
        lines += ["", f"Verdict {result.verdict}, validity {result.validity}, because of:", *reasons, *unrun]
    return "\n".join(lines)


def paragraph(trial: Trial, result: TrialResult) -> str:
    return " ".join(filter(None, [_let(trial), *_then(trial), _however(trial, result), _so(trial, result)]))


def _let(trial: Trial) -> str:
    request = trial.request
    if request is None:
        return "Let there be a refund that the evidence does not state without contradiction."
    approved = money(request["approved_minor"], request["currency"])
    captured = money(request["captured_minor"], request["currency"])
    return (
        f"Let {request['refund_request_id']} be an approved refund of {approved} on a captured payment of "
        f"{captured} ({request['payment_id']})."
    )


def _then(trial: Trial):
    """One sentence per dispatch, in sequence order, from its commit to its outcome."""
    for number, dispatch in enumerate(trial.dispatches(), 1):
        parts = [f"attempt {number} was dispatched (event {dispatch.seq})"]
        parts += [
            f"the provider committed {commit.row.get('transaction_id')} (event {commit.seq})"
            for commit in trial.journal.citing(dispatch, "provider_commit_confirmed")
        ]
        outcomes = trial.outcomes(dispatch)
        parts += [_outcome(trial, outcome) for outcome in outcomes]
        if not outcomes:
            parts.append("nobody recorded how it ended, so it is unknown")
        yield "Then " + ", ".join(parts) + "."


def _outcome(trial: Trial, outcome) -> str:
    if outcome.type == "caller_timeout_recorded":
        elapsed = f"{outcome.row.get('elapsed_ms')} ms"
        text = f"the caller gave up after {elapsed} (event {outcome.seq}) and could not know"
        for release in trial.journal.citing(outcome, "release_signalled"):
            text += f", which released the held response (event {release.seq})"
        return text
    if outcome.type == "response_received":
        return f"the caller was answered {outcome.row.get('transaction_id')} (event {outcome.seq})"
    return f"the caller recorded {outcome.type} (event {outcome.seq})"


def _however(trial: Trial, result: TrialResult) -> str:
    if result.verdict != FAIL:
        return ""
    effects = trial.ledger.effects()
    ids = ", ".join(effect.id for effect in effects) or "none"
    count = f"{len(effects)} successful transaction{'s' * (len(effects) != 1)} ({ids})"
    return (
        f"However, the ledger holds {count}, {money(result.refunded_minor, result.currency)} in all, "
        f"while the system reports {result.processing} and its knowledge of the effect is "
        f"{effect_knowledge(trial)}."
    )


def _so(trial: Trial, result: TrialResult) -> str:
    if trial.is_probe:
        return f"The transport probe is {result.validity}; it is not judged for the invariant."
    if result.verdict == FAIL:
        return "One approved refund is not one effect: fail."
    if result.verdict == PASS:
        return "The ledger holds exactly that one effect, seen in full and at rest: pass."
    return "The evidence does not allow a verdict: indeterminate."
