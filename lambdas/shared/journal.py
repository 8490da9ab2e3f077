"""The gapless journal writer: every fact is one event, every append one transaction.

    COUNTER n=k ----(n = k)------> COUNTER n=k+1    one TransactWriteItems:
    EVENT k+1 ---(absent)--------> EVENT k+1        counter, event and companions
    ledger, barrier, request ----> companions       become visible together

So the sequence is the real order of facts across functions, without clocks. The one hard question
is our own write whose answer was lost. It is settled by reading, never by guessing: after a turn
without a clear success the counter is read again, and once it has moved, the id of the event that
took the place says whether the write was ours.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotocoreConnectionError
from botocore.parsers import ResponseParserError

Item = Mapping[str, Any]
# A member of TransactItems. A callable gets (seq, event_id) and must be pure: it runs once a turn.
Companion = Item | Callable[[int, str], Item]

COUNTER = "COUNTER"
REQUEST = "REQUEST"

# The clauses of an append, each with the cases it admits.
COUNTER_ABSENT = "attribute_not_exists(n)"  # the first event of the trial: nobody has counted yet
COUNTER_UNMOVED = "n = :k"  # nobody appended since we read k
EVENT_ABSENT = "attribute_not_exists(entry)"  # the place k+1 is free

# The answer did not arrive or cannot be read; the write may have been applied.
LOST_ANSWER = (HTTPClientError, BotocoreConnectionError, ResponseParserError)
CONDITION_FAILED = "ConditionalCheckFailed"
# Refusals that a later turn may not meet again. Whatever is in neither list is raised at once.
TRANSIENT_REASONS = {
    CONDITION_FAILED,
    "TransactionConflict",
    "ThrottlingError",
    "ProvisionedThroughputExceeded",
}
TRANSIENT_CODES = {
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "TransactionConflictException",
    "TransactionInProgressException",
}

MAX_TURNS = 40
FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.2


@dataclass(frozen=True)
class Appended:
    """An event that is in the journal for good."""

    seq: int
    event_id: str


class JournalError(Exception):
    """The event was not appended, or nobody can say."""


class CompanionConflict(JournalError):
    """The condition of a companion refused the transaction: nothing of it was applied."""

    def __init__(self, index: int, operation: str, table: str, item: Item | None) -> None:
        super().__init__(f"companion {index} ({operation} in {table}): refused by its condition")
        self.index, self.operation, self.table, self.item = index, operation, table, item


class AppendExhausted(JournalError):
    """Every turn met a conflict or a lost answer; the last one is the cause."""


def event_entry(seq: int) -> str:
    return f"EVENT#{seq:06d}"


def typed(value: str | int | bool | Mapping[str, Any]) -> dict[str, Any]:
    """A value in DynamoDB's own form. Floats are refused: no quantity of ours is one."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, Mapping):
        return {"M": {name: typed(member) for name, member in value.items()}}
    raise TypeError(f"journal value: expected str, int, bool or mapping, got {type(value).__name__}")


class Journal:
    """Appends the events of one source. It keeps no state between appends."""

    def __init__(
        self,
        client: Any,
        table: str,
        source: str,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client, self.table, self._source = client, table, source
        self._now_ms, self._new_id, self._sleep = now_ms, new_id, sleep

    def append(
        self,
        trial_id: str,
        type: str,
        *,
        attempt: int | None = None,
        delivery_id: str | None = None,
        receive_count: int | None = None,
        lambda_request_id: str | None = None,
        transaction_id: str | None = None,
        caused_by: str | None = None,
        elapsed_ms: int | None = None,
        detail: Mapping[str, Any] | None = None,
        event_id: str | None = None,
        companions: Sequence[Companion] = (),
    ) -> Appended:
        """Append one event and its companions exactly once, and say where it stands."""
        event_id = event_id or self._new_id()
        # Fixed before the first turn: repeats under one ClientRequestToken must carry equal bytes.
        facts = {
            "trial_id": trial_id,
            "event_id": event_id,
            "source": self._source,
            "type": type,
            "at_ms": self._now_ms(),
            "attempt": attempt,
            "delivery_id": delivery_id,
            "receive_count": receive_count,
            "lambda_request_id": lambda_request_id,
            "transaction_id": transaction_id,
            "caused_by": caused_by,
            "elapsed_ms": elapsed_ms,
            "detail": detail,
        }
        event = {name: typed(value) for name, value in facts.items() if value is not None}
        return self._commit(trial_id, event_id, event, companions)

    def _commit(self, trial_id: str, event_id: str, event: Item, companions: Sequence[Companion]) -> Appended:
        sent_at: int | None = None  # the counter value that a transaction of ours went out under
        cause: Exception | None = None
        for pause in _pauses():
            self._sleep(pause)
            try:
                k = self._count(trial_id)
                # Once the counter has left `sent_at`, whatever is still in flight there is dead. So the
                # order matters: first the counter, then the event that made it move.
                if sent_at is not None and k > sent_at and self._is_ours(trial_id, sent_at + 1, event_id):
                    return Appended(sent_at + 1, event_id)
                sent_at = k
                transaction = self._transaction(trial_id, k, event_id, event, companions)
                self._client.transact_write_items(**transaction)
                return Appended(k + 1, event_id)
            except LOST_ANSWER as error:
                cause = error
            except ClientError as error:
                cause = error
                if (refused := _refused_companion(error)) is not None:
                    # Final, because the states that companions ask for never come back, unless it was
                    # an earlier write of our own that moved the state on.
                    if self._is_ours(trial_id, k + 1, event_id):
                        return Appended(k + 1, event_id)
                    raise _conflict(refused, transaction, error) from error
                if not _is_transient(error):
                    raise
        raise AppendExhausted(
            f"event {event_id} of trial {trial_id}: no success in {MAX_TURNS} turns"
        ) from cause

    def _count(self, trial_id: str) -> int:
        return int(self._read(trial_id, COUNTER).get("n", {"N": "0"})["N"])

    def _is_ours(self, trial_id: str, seq: int, event_id: str) -> bool:
        return self._read(trial_id, event_entry(seq)).get("event_id") == {"S": event_id}

    def _read(self, trial_id: str, entry: str) -> Item:
        key = {"trial_id": {"S": trial_id}, "entry": {"S": entry}}
        return self._client.get_item(TableName=self.table, Key=key, ConsistentRead=True).get("Item", {})

    def _transaction(
        self, trial_id: str, k: int, event_id: str, event: Item, companions: Sequence[Companion]
    ) -> dict[str, Any]:
        seq = k + 1
        counter = {
            "TableName": self.table,
            "Key": {"trial_id": {"S": trial_id}, "entry": {"S": COUNTER}},
            "UpdateExpression": "SET n = :next",
            "ConditionExpression": COUNTER_UNMOVED if k else COUNTER_ABSENT,
            "ExpressionAttributeValues": {":next": typed(seq)} | ({":k": typed(k)} if k else {}),
        }
        put = {
            "TableName": self.table,
            "Item": {**event, "entry": {"S": event_entry(seq)}, "seq": typed(seq)},
            "ConditionExpression": EVENT_ABSENT,
        }
        others = [companion(seq, event_id) if callable(companion) else companion for companion in companions]
        return {
            "TransactItems": [{"Update": counter}, {"Put": put}, *others],
            # One token per (event, place): a repeat at the same place is the same transaction.
            "ClientRequestToken": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{event_id}/{k}")),
        }


def _pauses() -> Iterator[float]:
    """No pause before the first turn, then exponential ones with full jitter, so that rivals spread out."""
    yield 0.0
    for turn in range(MAX_TURNS - 1):
        yield random.uniform(0, min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**turn))


def _reasons(error: ClientError) -> list[Item]:
    return error.response.get("CancellationReasons", [])


def _refused_companion(error: ClientError) -> int | None:
    """The index of the first companion whose own condition failed, if any."""
    for index, reason in enumerate(_reasons(error)[2:]):  # 0 is the counter, 1 the event
        if reason.get("Code") == CONDITION_FAILED:
            return index
    return None


def _conflict(index: int, transaction: Item, error: ClientError) -> CompanionConflict:
    ((operation, write),) = transaction["TransactItems"][index + 2].items()
    return CompanionConflict(index, operation, write["TableName"], _reasons(error)[index + 2].get("Item"))


def _is_transient(error: ClientError) -> bool:
    if reasons := _reasons(error):
        return all(reason.get("Code", "None") in TRANSIENT_REASONS | {"None"} for reason in reasons)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or error.response["Error"]["Code"] in TRANSIENT_CODES
