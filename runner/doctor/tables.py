"""What trials take for granted of a table, its transactions and its stream."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lambdas.shared.journal import COUNTER, Journal
from runner.doctor.behaviours import Behaviour, Ground, Probe, Told

WRITERS, APPENDS_EACH = 8, 5
READS = 20
SETTLE_S = 1.0


def _key(trial: str, entry: str) -> dict[str, Any]:
    return {"trial_id": {"S": trial}, "entry": {"S": entry}}


def _conditional_put(ground: Ground) -> Iterator[Told]:
    trial, client = ground.fresh(), ground.client("dynamodb")
    refused = []
    for text in ("first", "second"):
        try:
            client.put_item(
                TableName=ground.outputs["Table"],
                Item={**_key(trial, "put"), "text": {"S": text}},
                ConditionExpression="attribute_not_exists(entry)",
            )
        except client.exceptions.ConditionalCheckFailedException:
            refused.append(text)
    kept = _read(ground, trial, "put")["text"]["S"]
    yield Told(
        (refused, kept) == (["second"], "first"), f"refused {', '.join(refused) or 'none'}, kept {kept}"
    )


def _consistent_read(ground: Ground) -> Iterator[Told]:
    trial, stale = ground.fresh(), 0
    for n in range(READS):
        ground.client("dynamodb").put_item(
            TableName=ground.outputs["Table"], Item={**_key(trial, "read"), "n": {"N": str(n)}}
        )
        stale += _read(ground, trial, "read")["n"]["N"] != str(n)
    yield Told(stale == 0, f"{stale} of {READS} consistent reads were stale")


def _transaction_token(ground: Ground) -> Iterator[Told]:
    trial = ground.fresh()
    update = {
        "TableName": ground.outputs["Table"],
        "Key": _key(trial, "token"),
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    for _ in range(3):
        ground.client("dynamodb").transact_write_items(
            TransactItems=[{"Update": update}], ClientRequestToken=trial
        )
    n = _read(ground, trial, "token")["n"]["N"]
    yield Told(n == "1", f"applied {n} times of 3 sent")


def _append(ground: Ground) -> Iterator[Told]:
    """The journal's own append, by eight writers at once."""
    trial, table = ground.fresh(), ground.outputs["Table"]

    def write(_writer: int) -> list[tuple[int, str]]:
        journal = Journal(ground.client("dynamodb"), table, "ground", sleep=ground.clock.sleep)
        appended = [journal.append(trial, "ground") for _ in range(APPENDS_EACH)]
        return [(one.seq, one.event_id) for one in appended]

    with ThreadPoolExecutor(WRITERS) as pool:
        acknowledged = sorted(pair for pairs in pool.map(write, range(WRITERS)) for pair in pairs)
    query = {
        "TableName": table,
        "ConsistentRead": True,
        "KeyConditionExpression": "trial_id = :t",
        "ExpressionAttributeValues": {":t": {"S": trial}},
    }
    pages = ground.client("dynamodb").get_paginator("query").paginate(**query)
    items = [item for page in pages for item in page["Items"]]
    events = sorted((int(i["seq"]["N"]), i["event_id"]["S"]) for i in items if "seq" in i)
    counter = next(int(i["n"]["N"]) for i in items if i["entry"]["S"] == COUNTER)
    wanted = list(range(1, WRITERS * APPENDS_EACH + 1))
    astray = len(set(events) ^ set(acknowledged))
    yield Told(
        [seq for seq, _ in events] == wanted and counter == wanted[-1] and events == acknowledged,
        f"{len(events)} events, counter {counter}, {astray} not as acknowledged",
    )


def _stream(ground: Ground) -> Iterator[Told]:
    """Records of one partition, some of them filtered out, as a function saw them."""
    trial, report = ground.fresh(), ground.fresh()
    entries = [f"record-{n}" for n in range(8)]
    wanted = entries[::2]
    for entry in entries:
        marked = {"wanted": {"BOOL": entry in wanted}, "reports_to": {"S": report}}
        ground.client("dynamodb").put_item(
            TableName=ground.outputs["Table"], Item={**_key(trial, entry), **marked}
        )
    ground.until(lambda: len(ground.marks(report)) >= len(wanted))
    ground.clock.sleep(SETTLE_S)
    seen = ground.marks(report)
    yield Told(sorted(set(seen)) == wanted, f"{len(set(seen))} of {len(entries)} came through the filter")
    # At least once: a repeat is no breach, a later record before an earlier one is.
    firsts = list(dict.fromkeys(seen))
    yield Told(firsts == wanted, "in order" if firsts == wanted else f"as {', '.join(seen) or 'nothing'}")


def _read(ground: Ground, trial: str, entry: str) -> dict[str, Any]:
    return ground.client("dynamodb").get_item(
        TableName=ground.outputs["Table"], Key=_key(trial, entry), ConsistentRead=True
    )["Item"]


PROBES = (
    Probe(
        (Behaviour("conditional_put", "the second put under attribute_not_exists is refused"),),
        _conditional_put,
    ),
    Probe((Behaviour("consistent_read", "sees every write that was acknowledged"),), _consistent_read),
    Probe((Behaviour("transaction_token", "one ClientRequestToken is applied once"),), _transaction_token),
    Probe(
        (Behaviour("transactional_append", f"{WRITERS} writers at once: no gap, no repeat, nothing lost"),),
        _append,
    ),
    Probe(
        (
            Behaviour(
                "stream_filter", "the mapping hands on the records that its filter names, and no others"
            ),
            Behaviour("stream_order", "the records of one partition come in the order they were written"),
        ),
        _stream,
    ),
)
