"""The barrier that holds the first response of a treatment trial.

    ARMED --provider commits--> HELD --release controller--> RELEASED    (runner arms)
                                  '----hold budget over-----> EXPIRED

No state is ever left backwards, so a barrier fires at most once per trial. Each change is a companion
of the event that records it. Only provider and release controller are granted this table.
"""

from dataclasses import dataclass
from typing import Any

from lambdas.shared.journal import Companion, Item

ARMED, HELD, RELEASED, EXPIRED = "ARMED", "HELD", "RELEASED", "EXPIRED"

# The clauses of its changes, each with the cases it admits.
STILL_ARMED = "#state = :armed"  # no call of this trial was held yet
HELD_BY_DISPATCH = "#state = :held AND held_dispatch_event_id = :dispatch"  # this very call waits


@dataclass(frozen=True)
class Barrier:
    """One consistent read of a barrier."""

    state: str
    held_dispatch_event_id: str | None
    released_by_event_id: str | None
    release_event_id: str | None


class BarrierTable:
    def __init__(self, client: Any, table: str) -> None:
        self._client, self.table = client, table

    def read(self, trial_id: str) -> Barrier | None:
        """The barrier as it is now, or None in a trial without treatment."""
        answer = self._client.get_item(
            TableName=self.table, Key={"trial_id": {"S": trial_id}}, ConsistentRead=True
        )
        if "Item" not in answer:
            return None
        texts = {name: value.get("S") for name, value in answer["Item"].items()}
        return Barrier(
            state=texts["state"],
            held_dispatch_event_id=texts.get("held_dispatch_event_id"),
            released_by_event_id=texts.get("released_by_event_id"),
            release_event_id=texts.get("release_event_id"),
        )

    def hold(self, trial_id: str, attempt: int, dispatch_event_id: str) -> Companion:
        """ARMED -> HELD by this call, in the transaction of its commit."""
        changes = "held_attempt = :attempt, held_dispatch_event_id = :dispatch, held_event_id = :event"

        def companion(_: int, event_id: str) -> Item:
            values = {
                ":armed": {"S": ARMED},
                ":attempt": {"N": str(attempt)},
                ":dispatch": {"S": dispatch_event_id},
                ":event": {"S": event_id},
            }
            return self._update(trial_id, STILL_ARMED, HELD, changes, values)

        return companion

    def release(self, trial_id: str, dispatch_event_id: str, timeout_event_id: str) -> Companion:
        """HELD -> RELEASED, citing the timeout that allows it."""
        changes = "released_by_event_id = :timeout, release_event_id = :event"

        def companion(_: int, event_id: str) -> Item:
            values = {
                ":held": {"S": HELD},
                ":dispatch": {"S": dispatch_event_id},
                ":timeout": {"S": timeout_event_id},
                ":event": {"S": event_id},
            }
            return self._update(trial_id, HELD_BY_DISPATCH, RELEASED, changes, values)

        return companion

    def expire(self, trial_id: str, dispatch_event_id: str) -> Companion:
        """HELD -> EXPIRED: the provider gives up waiting."""
        values = {":held": {"S": HELD}, ":dispatch": {"S": dispatch_event_id}}
        return self._update(trial_id, HELD_BY_DISPATCH, EXPIRED, "", values)

    def _update(self, trial_id: str, condition: str, state: str, changes: str, values: Item) -> Item:
        return {
            "Update": {
                "TableName": self.table,
                "Key": {"trial_id": {"S": trial_id}},
                "UpdateExpression": "SET " + ", ".join(filter(None, ["#state = :next", changes])),
                "ConditionExpression": condition,
                "ExpressionAttributeNames": {"#state": "state"},
                "ExpressionAttributeValues": {":next": {"S": state}, **values},
            }
        }
