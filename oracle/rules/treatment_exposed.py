"""V10-V14, V16: the treatment was applied: armed, fired, and commit < timeout < release < released by
sequence.

    barrier_armed < send ... dispatch < commit(HELD) < caller_timeout < release_signalled < response_released

Without it one effect would be luck, not proof (CASES D03). Only sequence numbers order events of different
functions; clocks do not (CASES D31). Least evidence: trial.json, protocol, whole journal and barrier read.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import VALIDITY, Rule


def check(trial):
    journal = trial.journal
    for event in journal.of_type("barrier_expired"):
        yield breach("V14", "the barrier expired before it was released", None, **event.witness())
    held = [
        event
        for event in journal.of_type("provider_commit_confirmed")
        if event.row["detail"]["barrier"] == "HELD"
    ]
    releases, released = journal.of_type("release_signalled"), journal.of_type("response_released")
    timeouts = [
        event for event in journal.of_type("caller_timeout_recorded") if held and event.cites == held[0].cites
    ]
    counts = {
        "held": len(held),
        "timeouts": len(timeouts),
        "releases": len(releases),
        "released": len(released),
    }
    if set(counts.values()) != {1} or not trial.document["armed"]:
        if not journal.of_type("barrier_expired"):
            yield breach("V16", "the treatment did not fire exactly once", trial.where, **counts)
        return
    chain = [held[0], timeouts[0], releases[0], released[0]]
    yield from _ordered(trial, chain)
    yield from _cited(trial, *chain)
    yield from _reached(trial)


def _ordered(trial, chain):
    armed = trial.journal.of_type("barrier_armed")
    sent = trial.journal.of_type("probe_invoked" if trial.claims_probe else "message_send_started")
    if len(armed) != 1 or not sent or armed[0].seq > sent[0].seq:
        yield breach(
            "V10",
            "the barrier was not armed once before the message",
            None,
            armed=[event.seq for event in armed],
            sent=[event.seq for event in sent],
        )
    seqs = [event.seq for event in chain]
    if seqs != sorted(seqs):
        yield breach(
            "V11", "commit, timeout, release and released response are out of order", None, seqs=seqs
        )


def _cited(trial, held, timeout, release, released):
    item, armed = trial.journal.barrier or {}, trial.journal.of_type("barrier_armed")
    expected = {
        "state": "RELEASED",
        "held_dispatch_event_id": held.cites,
        "held_event_id": held.id,
        "released_by_event_id": timeout.id,
        "release_event_id": release.id,
        "armed_event_id": armed[0].id if armed else None,
    }
    wrong = sorted(name for name, value in expected.items() if item.get(name) != value)
    if release.cites != timeout.id:
        yield breach("V12", "the release does not cite the timeout", None, **release.witness())
    elif released.cites != release.id:
        yield breach("V12", "the released response does not cite the release", None, **released.witness())
    elif wrong:
        yield breach("V12", f"the barrier item disagrees: {', '.join(wrong)}", None, **release.witness())


def _reached(trial):
    deadline = trial.protocol["caller"]["deadline_ms"]
    for event in trial.journal.of_type("caller_timeout_recorded"):
        if event.row["elapsed_ms"] < deadline or event.row["detail"]["deadline_ms"] != deadline:
            yield breach(
                "V13",
                f"expected at least {deadline} ms, found {event.row['elapsed_ms']}",
                None,
                **event.witness(),
            )


RULE = Rule(
    "treatment_exposed",
    VALIDITY,
    frozenset({"document", "protocol", "journal"}),
    check,
    lambda trial: trial.is_treatment,
)
