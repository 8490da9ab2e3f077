"""Canonical JSON and read records: every page raw with its markers, errors recorded, nothing dropped."""

import json
from datetime import datetime, timedelta, timezone

import botocore.session
import pytest
from botocore.stub import Stubber

from runner.records import Reads, canonical, normalise

TABLE = {"TableName": "T", "ConsistentRead": True}


def dynamodb():
    return botocore.session.get_session().create_client(
        "dynamodb", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y"
    )


def test_canonical_sorts_keys_and_ends_the_line():
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}\n'.encode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.5, {"$decimal": "1.5"}),
        (2**53, {"$decimal": "9007199254740992"}),
        (2**53 - 1, 9007199254740991),
        (True, True),
        (b"\x00\xff", {"$base64": "AP8="}),
        ("\ud800", {"$base64": "7aCA"}),
        (
            datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=timezone(timedelta(hours=-3))),
            "2026-01-02T06:04:05.006000+00:00",
        ),
        ({"a": (1, [2.0])}, {"a": [1, [{"$decimal": "2.0"}]]}),
    ],
)
def test_what_json_or_the_format_cannot_hold_is_marked(value, expected):
    assert normalise(value) == expected


def test_d05_every_page_is_kept_with_its_markers():
    client = dynamodb()
    key = {"trial_id": {"S": "t"}}
    with Stubber(client) as stub:
        stub.add_response("query", {"Items": [key], "Count": 1, "LastEvaluatedKey": key}, TABLE)
        stub.add_response("query", {"Items": [], "Count": 0}, {**TABLE, "ExclusiveStartKey": key})
        reads = Reads(lambda: 7)
        pages = reads.all_pages("ledger_snapshot_1", client, "Query", TABLE)
    assert [page["Count"] for page in pages] == [1, 0]
    first, second = reads.lines
    assert (first["page"], first["marker_in"], first["marker_out"]) == (1, None, key)
    assert (second["page"], second["marker_in"], second["marker_out"]) == (2, key, None)
    assert second["request"]["ExclusiveStartKey"] == key
    assert first["at_ms"] == 7
    assert [json.loads(line) for line in reads.to_bytes().splitlines()] == reads.lines


def test_an_api_error_is_a_record_and_ends_the_read():
    client = dynamodb()
    with Stubber(client) as stub:
        stub.add_client_error("query", "AccessDeniedException", "no")
        reads = Reads(lambda: 0)
        assert reads.all_pages("journal", client, "Query", TABLE) == []
    assert reads.lines[0]["error"] == {"code": "AccessDeniedException", "message": "no"}
    assert "response" not in reads.lines[0]
