"""V03: the message is the request and nothing else, and every delivery and dispatch was of it.

Least evidence: trial.json and a whole journal.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.package import exactly
from oracle.rules.base import VALIDITY, Rule, is_full
from oracle.trial import sent_body


def check(trial):
    message, where = trial.document["message"], trial.where / "message"
    if message is None:
        yield breach("V03", "no message was sent", where)
        return
    if not exactly(sent_body(trial), {"trial_id": trial.trial_id, "request": trial.document["request"]}):
        yield breach("V03", "the body is not the trial's id and request", where / "body")
    if {message["group_id"], message["deduplication_id"]} != {trial.trial_id}:
        yield breach("V03", "group and deduplication id are not the trial's id", where)
    sent = trial.journal.of_type("message_sent")
    if len(sent) != 1:
        yield breach(
            "V03", f"the message was sent {len(sent)} times", where, seqs=[event.seq for event in sent]
        )
    for event in trial.journal.of_type("message_sent", "delivery_received", "dispatch_started"):
        if event.row["delivery_id"] != message["message_id"]:
            yield breach("V03", f"{event.type} is of another message", None, **event.witness())
    deliveries = {event.id for event in trial.journal.of_type("delivery_received")}
    for dispatch in trial.dispatches():
        if dispatch.cites not in deliveries:
            yield breach("V03", "the dispatch is of no delivery", None, **dispatch.witness())


RULE = Rule("message_as_sent", VALIDITY, frozenset({"document", "journal"}), check, is_full)
