"""The release controller: which timeouts release, which do not, and why."""

import pytest

from lambdas.release.controller import Controller, Decision, Timeout, decide, on_record
from lambdas.shared.barrier import Barrier
from tests.lambdas.lab import BARRIER, TRIAL

TIMEOUT = Timeout(TRIAL, "timeout-1", "caller", 1, "dispatch-1", 3000)
HELD_BY_US = ("HELD", {"held_dispatch_event_id": "dispatch-1"})
HELD = Barrier("HELD", "dispatch-1", None, None)


def image(**changes):
    item = {
        "trial_id": {"S": TRIAL},
        "entry": {"S": "EVENT#000005"},
        "seq": {"N": "5"},
        "event_id": {"S": "timeout-1"},
        "source": {"S": "caller"},
        "type": {"S": "caller_timeout_recorded"},
        "at_ms": {"N": "1"},
        "attempt": {"N": "1"},
        "caused_by": {"S": "dispatch-1"},
        "elapsed_ms": {"N": "3001"},
    } | changes
    return {name: value for name, value in item.items() if value}


def record(event_name="INSERT", **changes):
    return {"eventName": event_name, "dynamodb": {"NewImage": image(**changes)}}


def set_barrier(lab, state, **texts):
    fields = {"trial_id": TRIAL, "state": state} | texts
    lab.client.put_item(TableName=BARRIER, Item={name: {"S": value} for name, value in fields.items()})


def held(lab):
    set_barrier(lab, "HELD", held_dispatch_event_id="dispatch-1")


def test_a_timeout_of_the_held_call_releases_it(lab):
    held(lab)
    assert on_record(lab.controller, record(), "request-1") is Decision.RELEASE
    (signalled,) = lab.events()
    assert (signalled["type"], signalled["caused_by"]) == ("release_signalled", "timeout-1")
    barrier = lab.barrier_item()
    assert (barrier["state"], barrier["released_by_event_id"]) == ("RELEASED", "timeout-1")
    assert barrier["release_event_id"] == signalled["event_id"]


def test_a_redelivered_record_changes_nothing(lab):
    held(lab)
    on_record(lab.controller, record(), "request-1")
    before = lab.rows("journal"), lab.barrier_item()
    assert on_record(lab.controller, record(), "request-2") is Decision.ALREADY_RELEASED
    assert (lab.rows("journal"), lab.barrier_item()) == before


@pytest.mark.parametrize(
    ("barrier", "changes", "reason"),
    [
        (None, {}, "barrier_absent"),
        (("ARMED", {}), {}, "not_held"),
        (("EXPIRED", {"held_dispatch_event_id": "dispatch-1"}), {}, "not_held"),
        (("RELEASED", {"released_by_event_id": "timeout-0"}), {}, "not_held"),
        (("HELD", {"held_dispatch_event_id": "dispatch-0"}), {}, "other_dispatch"),
        (HELD_BY_US, {"elapsed_ms": {"N": "2999"}}, "elapsed_below_deadline"),
        (HELD_BY_US, {"source": {"S": "provider"}}, "not_from_caller"),
        (HELD_BY_US, {"caused_by": None}, "incomplete"),
        (HELD_BY_US, {"attempt": None}, "incomplete"),
        (HELD_BY_US, {"elapsed_ms": None}, "incomplete"),
    ],
)
def test_anything_else_is_refused_with_its_reason(lab, barrier, changes, reason):
    if barrier:
        set_barrier(lab, barrier[0], **barrier[1])
    before = lab.barrier_item()
    assert on_record(lab.controller, record(**changes), "request-1") == reason
    (refused,) = lab.events()
    assert (refused["type"], refused["caused_by"]) == ("release_refused", "timeout-1")
    assert refused["detail"] == {"reason": reason}
    assert lab.barrier_item() == before


@pytest.mark.parametrize(
    "other",
    [record("MODIFY"), record("REMOVE"), record(type={"S": "release_refused"}), {"eventName": "INSERT"}],
    ids=["modified", "removed", "other type", "no image"],
)
def test_a_record_that_is_no_inserted_timeout_leaves_no_trace_that_could_come_back(lab, other):
    held(lab)
    assert on_record(lab.controller, other, "request-1") is None
    assert lab.events() == []
    assert lab.barrier_item()["state"] == "HELD"


def test_a_barrier_that_expires_under_our_hands_is_refused(lab, monkeypatch):
    held(lab)
    read = lab.barrier.read

    def read_then_expire(trial_id):
        seen = read(trial_id)
        monkeypatch.undo()
        set_barrier(lab, "EXPIRED", held_dispatch_event_id="dispatch-1")
        return seen

    monkeypatch.setattr(lab.barrier, "read", read_then_expire)
    assert on_record(lab.controller, record(), "request-1") is Decision.NOT_HELD
    assert lab.types() == ["release_refused"]
    assert lab.barrier_item()["state"] == "EXPIRED"


def test_errors_of_the_service_go_out_so_that_the_mapping_repeats(lab):
    controller = Controller(lab.journal("release"), type(lab.barrier)(lab.client, "no-such-table"), 3000)
    with pytest.raises(Exception, match="ResourceNotFound"):
        on_record(controller, record(), "request-1")
    assert lab.events() == []


def test_the_deadline_itself_is_enough():
    assert decide(TIMEOUT, HELD, 3000) is Decision.RELEASE
    assert decide(TIMEOUT, HELD, 3001) is Decision.ELAPSED_BELOW_DEADLINE
