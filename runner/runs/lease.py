"""The lease of a stack: one runner at a time, by one conditional item in the journal table.

    free -> held(owner, until) -> renewed ... -> released (deleted)
                  `-> expired: the owner died; the next one may take it

The item is no trial's: its keys are both `LEASE`, which no trial id can be. Expiry compares wall clocks of
operators' hosts, so the lease keeps honest people apart; that evidence is whole never rests on it.
"""

import threading
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from runner.errors import UsageError

KEY = {"trial_id": {"S": "LEASE"}, "entry": {"S": "LEASE"}}
TERM_S = 60
RENEW_EVERY_S = 15

# The clauses under which the item may be written, each with the case it admits.
NOBODY_HOLDS = "attribute_not_exists(trial_id)"  # never taken, or released
MINE = "#owner = :owner"  # renewed, or taken up again by the same run's resume
EXPIRED = "until_ms < :now"  # its owner stopped renewing


class Lease:
    """The lease of one journal table for one run; `take` starts its renewal, `release` ends it."""

    def __init__(
        self, client: Any, table: str, owner: str, now_ms: Callable[[], int], lost: Callable[[], None]
    ):
        """`lost` is called once when a renewal finds the lease in other hands."""
        self._client, self._table, self._owner = client, table, owner
        self._now_ms, self._lost = now_ms, lost
        self._done = threading.Event()
        self._renewal = threading.Thread(target=self._renew, name="lease", daemon=True)

    def take(self) -> None:
        """Take the lease. Raises UsageError naming the run that holds it."""
        try:
            self._put()
        except ClientError as error:
            if not _refused(error):
                raise
            raise _refusal(_read(self._client, self._table), self._now_ms()) from error
        self._renewal.start()

    def release(self) -> None:
        """Give the lease up if it is still ours. A lease that cannot be released expires."""
        self._done.set()
        if self._renewal.is_alive():
            self._renewal.join()
        try:
            self._client.delete_item(
                TableName=self._table,
                Key=KEY,
                ConditionExpression=MINE,
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": {"S": self._owner}},
            )
        except (ClientError, BotoCoreError):
            return

    def _put(self) -> None:
        now = self._now_ms()
        self._client.put_item(
            TableName=self._table,
            Item={**KEY, "owner": {"S": self._owner}, "until_ms": {"N": str(now + TERM_S * 1000)}},
            ConditionExpression=f"{NOBODY_HOLDS} OR {MINE} OR {EXPIRED}",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={":owner": {"S": self._owner}, ":now": {"N": str(now)}},
        )

    def _renew(self) -> None:
        while not self._done.wait(RENEW_EVERY_S):
            try:
                self._put()
            except ClientError as error:
                if _refused(error):
                    self._lost()
                    return
            except BotoCoreError:
                continue  # the term leaves room for the next try


def demand_free(client: Any, table: str, now_ms: int) -> None:
    """Refuse while a run holds the stack, before anything about the stack is changed.

    Raises UsageError naming the run. It takes nothing: only `Lease.take` is proof against a race.
    """
    held = _read(client, table)
    if held and int(held["until_ms"]["N"]) >= now_ms:
        raise _refusal(held, now_ms)


def holder(client: Any, table: str) -> tuple[str, int] | None:
    """Return the run that took the lease and did not release it, and its end in ms, past or not."""
    held = _read(client, table)
    return (held["owner"]["S"], int(held["until_ms"]["N"])) if held else None


def _read(client: Any, table: str) -> dict[str, Any]:
    return client.get_item(TableName=table, Key=KEY, ConsistentRead=True).get("Item", {})


def _refusal(held: dict[str, Any], now_ms: int) -> UsageError:
    owner = held.get("owner", {}).get("S", "another run")
    left_s = max(0, int(held.get("until_ms", {}).get("N", "0")) - now_ms) // 1000
    return UsageError(
        "another run holds this stack",
        expected="one runner on one stack",
        found=f"run {owner}, whose lease has {left_s} s left if it is not renewed",
        next_step=f"wait for it; if it was killed, `python -m runner resume {owner}`",
    )


def _refused(error: ClientError) -> bool:
    return error.response.get("Error", {}).get("Code") == "ConditionalCheckFailedException"
