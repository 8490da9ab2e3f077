"""V06, V17: each attempt is one request: by configuration, and by what the provider saw (CASES D13-D15).

Least evidence: environment, protocol and a whole journal.
"""

from __future__ import annotations

from oracle.finding import Where, breach
from oracle.rules.base import VALIDITY, Rule

PROVIDER_EVENTS = ("provider_request_received", "provider_commit_confirmed")


def check(trial):
    yield from _configured(trial)
    dispatches = {event.id for event in trial.dispatches()}
    for event in trial.journal.of_type(*PROVIDER_EVENTS):
        if event.cites not in dispatches:
            yield breach("V17", f"{event.type} cites no dispatch", None, **event.witness())
    for dispatch in trial.dispatches():
        for kind in PROVIDER_EVENTS:
            seen = trial.journal.citing(dispatch, kind)
            if len(seen) > 1:
                yield breach(
                    "V17",
                    f"{len(seen)} {kind} events for one dispatch",
                    None,
                    **dispatch.witness(),
                    seen=[event.seq for event in seen],
                )


def _configured(trial):
    functions, expected = (
        trial.documents.environment["functions"],
        trial.protocol["caller"]["total_max_attempts"],
    )
    where = Where("environment.json") / "functions" / trial.variant
    frozen = functions.get(trial.variant)
    if not isinstance(frozen, dict) or not isinstance(frozen.get("botocore"), str):
        yield breach("V06", "the caller's botocore version is not frozen", where / "botocore")
        return
    node = frozen
    for step in ("sdk_config", "lambda", "retries", "total_max_attempts"):
        node = node.get(step) if isinstance(node, dict) else None
    if type(node) is not int or node != expected:
        yield breach(
            "V06",
            f"total_max_attempts of the provider client: expected {expected}, found {node}",
            where / "sdk_config" / "lambda" / "retries",
        )


RULE = Rule("one_request_on_the_wire", VALIDITY, frozenset({"environment", "protocol", "journal"}), check)
