"""Durable executions are found by every listing there is, by the trial's own identity, to the last page."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import boto3
import pytest
from botocore.stub import Stubber

from runner import protocol
from runner.names import Output
from runner.records import Reads
from runner.trials.collect import durable_executions, histories
from runner.trials.observe import Observation
from runner.trials.trial import Trial

FUNCTION = "SucStudy1Rehearsal-durable"
ALIAS = "live"
BEGAN = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
P = protocol.load("study-1-rehearsal")


def arn(name):
    return f"arn:aws:lambda:us-east-1:123456789012:function:{FUNCTION}:3/durable-execution/{name}/{'0' * 8}"


def listed(name, status="RUNNING", began=BEGAN):
    return {
        "DurableExecutionArn": arn(name),
        "DurableExecutionName": name,
        "FunctionArn": f"arn:aws:lambda:us-east-1:123456789012:function:{FUNCTION}:3",
        "Status": status,
        "StartTimestamp": began,
    }


def described(name, trial_id="t1", status="RUNNING"):
    body = json.dumps({"trial_id": trial_id, "request": {}})
    return {**listed(name, status), "Version": "3", "InputPayload": json.dumps({"Records": [{"body": body}]})}


class Aws:
    """A Lambda client that answers exactly what it is told, and refuses any call it was not told of."""

    def __init__(self):
        self._client = boto3.client(
            "lambda", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
        )
        self._stub = Stubber(self._client)
        self._stub.activate()
        self.lab = SimpleNamespace(
            client=lambda _service: self._client, outputs={Output.DURABLE_FUNCTION: FUNCTION}
        )
        self.reads = Reads(lambda: 0)

    def versions(self, *names):
        versions = [{"Version": name, "FunctionName": FUNCTION} for name in names]
        self._answer("list_versions_by_function", {"FunctionName": FUNCTION}, {"Versions": versions})

    def listing(self, *executions, qualifier=None, marker=None, next_marker=None):
        asked = {"FunctionName": FUNCTION}
        asked |= {"Qualifier": qualifier} if qualifier else {}
        asked |= {"Marker": marker} if marker else {}
        answer = {"DurableExecutions": list(executions)} | (
            {"NextMarker": next_marker} if next_marker else {}
        )
        self._answer("list_durable_executions_by_function", asked, answer)

    def refused(self, qualifier, message):
        self._stub.add_client_error(
            "list_durable_executions_by_function",
            "InvalidParameterValueException",
            message,
            400,
            expected_params={"FunctionName": FUNCTION, "Qualifier": qualifier},
        )

    def execution(self, name, **more):
        self._answer("get_durable_execution", {"DurableExecutionArn": arn(name)}, described(name, **more))

    def history(self, name, *events, marker=None, next_marker=None):
        asked = {"DurableExecutionArn": arn(name), "IncludeExecutionData": True, "MaxItems": 1000}
        asked |= {"Marker": marker} if marker else {}
        answer = {"Events": list(events)} | ({"NextMarker": next_marker} if next_marker else {})
        self._answer("get_durable_execution_history", asked, answer)

    def _answer(self, method, asked, answer):
        self._stub.add_response(method, answer, asked)

    def find(self, trial_id="t1"):
        trial = Trial(
            trial_id, "r1", "trial", "CONTROL", "durable", started_at_ms=int(BEGAN.timestamp() * 1000)
        )
        found = durable_executions(self.reads, self.lab, trial)
        self._stub.assert_no_pending_responses()
        return {found[key]["DurableExecutionName"]: found[key]["Status"] for key in found}


@pytest.fixture
def aws():
    return Aws()


def test_d09_executions_are_the_union_of_all_listings_and_no_alias_is_ever_asked(aws):
    """The stub refuses any other request, so `Qualifier=live` would fail here."""
    aws.versions("$LATEST", "2", "3")
    aws.listing()
    aws.listing(qualifier="$LATEST")
    aws.listing(qualifier="2")
    aws.listing(listed("a"), qualifier="3")
    aws.execution("a")
    assert aws.find() == {"a": "RUNNING"}
    asked = [line["request"].get("Qualifier") for line in aws.reads.lines if line["read"] == "executions"]
    assert asked == [None, "$LATEST", "2", "3"] and ALIAS not in asked


def test_d09_the_alias_trap_of_the_article_is_recorded_and_never_read_as_none_running(aws):
    """`Cannot filter by alias`: whoever asks by alias, or by a version AWS refuses, has learnt nothing."""
    aws.versions("3")
    aws.listing()
    aws.refused("3", "Cannot filter by alias")
    assert aws.find() == {}
    (refusal,) = [line for line in aws.reads.lines if "error" in line]
    assert refusal["error"] == {"code": "InvalidParameterValueException", "message": "Cannot filter by alias"}
    assert refusal["of"] == "3" and "response" not in refusal


def test_d09_a_refused_listing_is_not_rest(aws):
    aws.versions("3")
    aws.listing()
    aws.refused("3", "Cannot filter by alias")
    assert not watcher(aws)._executions_terminal()


def test_d09_a_finished_request_without_any_execution_is_not_rest(aws):
    """The request can only have been finished by one: the listing is behind, or looks elsewhere."""
    aws.versions("3")
    aws.listing()
    aws.listing(qualifier="3")
    assert not watcher(aws)._executions_terminal()


@pytest.mark.parametrize(("status", "rest"), [("SUCCEEDED", True), ("RUNNING", False)])
def test_only_terminal_executions_are_rest(aws, status, rest):
    aws.versions("3")
    aws.listing(listed("a", status))
    aws.listing(qualifier="3")
    aws.execution("a", status=status)
    assert watcher(aws)._executions_terminal() is rest


def watcher(aws):
    trial = Trial("t1", "r1", "trial", "CONTROL", "durable", started_at_ms=int(BEGAN.timestamp() * 1000))
    clock = SimpleNamespace(now_ms=lambda: 0, monotonic=lambda: 0.0)
    return Observation(aws.lab, P, clock, trial)


def test_d09_only_the_trials_own_executions_count_whatever_their_names_contain(aws):
    aws.versions("3")
    aws.listing(listed("ref-A1"), listed("ref-A10"))
    aws.listing(qualifier="3")
    aws.execution("ref-A1", trial_id="t1")
    aws.execution("ref-A10", trial_id="t10")
    assert aws.find("t1") == {"ref-A1": "RUNNING"}


def test_all_pages_of_every_listing_are_read_with_their_markers(aws):
    aws.versions("3")
    aws.listing(listed("a"), next_marker="m1")
    aws.listing(listed("b"), marker="m1")
    aws.listing(listed("b"), qualifier="3", next_marker="m2")
    aws.listing(listed("c"), qualifier="3", marker="m2")
    for name in "abc":
        aws.execution(name)
    assert aws.find() == {"a": "RUNNING", "b": "RUNNING", "c": "RUNNING"}
    pages = [
        (line["of"], line["page"], line["marker_in"], line["marker_out"])
        for line in aws.reads.lines
        if line["read"] == "executions"
    ]
    assert pages == [("", 1, None, "m1"), ("", 2, "m1", None), ("3", 1, None, "m2"), ("3", 2, "m2", None)]


def test_an_old_execution_is_left_out_only_if_it_was_terminal(aws):
    before = datetime(2026, 11, 29, 11, 0, tzinfo=UTC)
    aws.versions("3")
    aws.listing(listed("over", "SUCCEEDED", before), listed("paused", "PAUSED", before))
    aws.listing(qualifier="3")
    aws.execution("paused", trial_id="t0", status="RUNNING")
    assert aws.find() == {}


def test_an_execution_whose_input_cannot_be_read_is_nobodys(aws):
    aws.versions("3")
    aws.listing(listed("odd"))
    aws.listing(qualifier="3")
    aws._answer(
        "get_durable_execution",
        {"DurableExecutionArn": arn("odd")},
        {**described("odd"), "InputPayload": "{"},
    )
    assert aws.find() == {}
    assert [line["read"] for line in aws.reads.lines][-1] == "execution", "but it is in the evidence"


def test_d05_every_page_of_a_history_is_frozen(aws):
    first = {"EventType": "ExecutionStarted", "EventId": 1, "EventTimestamp": BEGAN}
    last = {"EventType": "ExecutionSucceeded", "EventId": 2, "EventTimestamp": BEGAN}
    aws.history("a", first, next_marker="m1")
    aws.history("a", last, marker="m1")
    histories(aws.reads, aws.lab, {arn("a"): {}})
    pages = [(line["page"], line["marker_in"], line["marker_out"]) for line in aws.reads.lines]
    assert pages == [(1, None, "m1"), (2, "m1", None)]
    types = [event["EventType"] for line in aws.reads.lines for event in line["response"]["Events"]]
    assert types == ["ExecutionStarted", "ExecutionSucceeded"]
