"""DynamoDB's typed items, and the question whether a Query saw a whole partition of the base table
consistently.
"""

from __future__ import annotations

import re

from oracle.finding import Finding, Where, breach
from oracle.reads import Record

_CONDITION = re.compile(r"\s*(#?\w+)\s*=\s*(:\w+)\s*\Z")
_QUERY_MEMBERS = {
    "TableName",
    "KeyConditionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
    "ConsistentRead",
    "ExclusiveStartKey",
    "Limit",
    "ScanIndexForward",
    "ReturnConsumedCapacity",
}
_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,15})\Z")


class Undecodable(Exception):
    """An item that is not of the form the format asks for."""


def plain(item: dict) -> dict:
    """A typed item as Python values; only strings, integers, booleans, null, maps and lists occur."""
    if type(item) is not dict:
        raise Undecodable("not an item")
    row = {}
    for name, value in item.items():
        # Nearly every attribute is a string, and this loop is where a judge spends its time.
        text = value.get("S") if type(value) is dict and len(value) == 1 else None
        row[name] = text if type(text) is str else _value(value)
    return row


def _value(value):
    if type(value) is not dict or len(value) != 1:
        raise Undecodable("not a typed value")
    ((kind, inner),) = value.items()
    if kind == "N" and type(inner) is str and _INTEGER.match(inner):
        return int(inner)
    if (kind == "BOOL" and isinstance(inner, bool)) or (kind == "NULL" and inner is True):
        return inner if kind == "BOOL" else None
    if kind == "M":
        return plain(inner)
    if kind == "L" and isinstance(inner, list):
        return [_value(each) for each in inner]
    raise Undecodable(f"not a permitted value of type {kind[:8]}")


def check_query(record: Record, table: str | None, trial_id: str) -> list[Finding]:
    """Whether one page is a consistent Query of the trial's partition of the base table, truly counted."""
    findings, request, response, where = [], record.request, record.response, record.where
    if record.error:
        return findings  # reported once, as R08
    if request.get("ConsistentRead") is not True:
        findings.append(
            breach("R05", "the read was eventually consistent", where / "request" / "ConsistentRead")
        )
    if not _by_trial_key(request, trial_id):
        findings.append(breach("R06", "not a plain Query by the trial's key", where / "request"))
    if table is not None and request.get("TableName") != table:
        findings.append(breach("R09", f"expected table {table}", where / "request" / "TableName"))
    items = response.get("Items")
    for name in ("Count", "ScannedCount"):  # more scanned than counted: something was filtered away
        count = response.get(name, None if name == "Count" or not isinstance(items, list) else len(items))
        if not isinstance(items, list) or type(count) is not int or count != len(items):
            findings.append(breach("R07", f"{name} is not the number of Items", where / "response" / name))
            break
    return findings


def _by_trial_key(request: dict, trial_id: str) -> bool:
    condition = request.get("KeyConditionExpression")
    match = _CONDITION.match(condition) if isinstance(condition, str) else None
    if match is None or not set(request) <= _QUERY_MEMBERS:
        return False
    names, values = request.get("ExpressionAttributeNames") or {}, request.get("ExpressionAttributeValues")
    if not isinstance(names, dict) or not isinstance(values, dict):
        return False
    name = names.get(match[1]) if match[1].startswith("#") else match[1]
    return name == "trial_id" and values == {match[2]: {"S": trial_id}}


def item_place(record: Record, position: int) -> Where:
    """Where the item at that position of a page lies."""
    return record.where / "response" / "Items" / position


def items_of(record: Record) -> list:
    items = record.response.get("Items")
    return items if isinstance(items, list) else []
