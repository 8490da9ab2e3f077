"""The provider: every request moves money, and the barrier holds one answer per trial."""

import pytest

from lambdas.caller.attempt import AttemptTimedOut, run_attempt
from lambdas.caller.message import Delivery
from lambdas.provider.refunds import serve
from lambdas.release.controller import Decision
from tests.lambdas.lab import BARRIER, LEDGER, TRIAL, sqs_event

CALL = {
    "trial_id": TRIAL,
    "refund_request_id": "ref-poc-001",
    "payment_id": "pay-poc-001",
    "amount_minor": 10000,
    "currency": "BRL",
    "dispatch_event_id": "dispatch-1",
    "attempt": 1,
    "delivery_id": "message-1",
}


def hold(lab):
    """A treatment trial whose first call is held."""
    lab.arm()
    with pytest.raises(AttemptTimedOut):
        run_attempt(lab.caller, Delivery.parse(sqs_event()), 1, "lambda-1")


def test_the_answer_is_about_the_request(lab):
    answer = serve(lab.provider, CALL, "request-1")
    (row,) = lab.rows(LEDGER)
    assert answer == {
        "status": "COMMITTED",
        "transaction_id": row["transaction_id"],
        "refund_request_id": "ref-poc-001",
        "amount_minor": 10000,
        "currency": "BRL",
    }
    assert row == {
        "trial_id": TRIAL,
        "transaction_id": "tx-2",
        "refund_request_id": "ref-poc-001",
        "payment_id": "pay-poc-001",
        "amount_minor": 10000,
        "currency": "BRL",
        "status": "SUCCEEDED",
        "seq": 2,
        "dispatch_event_id": "dispatch-1",
        "attempt": 1,
        "provider_request_id": "request-1",
        "committed_at_ms": 1,
    }
    received, commit, sent = lab.events()
    assert (received["caused_by"], received["lambda_request_id"]) == ("dispatch-1", "request-1")
    assert (commit["caused_by"], commit["transaction_id"]) == ("dispatch-1", "tx-2")
    assert (sent["type"], sent["caused_by"]) == ("response_sent", commit["event_id"])


def test_the_same_request_again_moves_money_again(lab):
    for _ in range(3):
        serve(lab.provider, CALL, "request-1")
    assert len({row["transaction_id"] for row in lab.rows(LEDGER)}) == 3
    assert sum(row["amount_minor"] for row in lab.rows(LEDGER)) == 30000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"amount_minor": 100.5}, "amount_minor: expected a positive whole number, found 100.5"),
        ({"amount_minor": True}, "amount_minor: expected a positive whole number, found True"),
        ({"amount_minor": 0}, "amount_minor: expected a positive whole number, found 0"),
        ({"currency": "R$"}, "currency: expected three capital letters, found 'R$'"),
        ({"payment_id": None}, "payment_id: expected a printable text, found None"),
    ],
)
def test_d24_a_request_that_is_not_money_is_refused_and_moves_none(lab, change, message):
    assert serve(lab.provider, CALL | change, "request-1") == {
        "status": "REFUSED",
        "code": "INVALID_REQUEST",
        "message": message,
    }
    # It arrived, so it is recorded: attempts are counted from these events.
    assert lab.types() == ["provider_request_received"]
    assert lab.rows(LEDGER) == []


@pytest.mark.parametrize("event", [{}, [], CALL | {"scenario": "CONTROL"}, CALL | {"attempt": "1"}])
def test_a_request_without_its_envelope_is_refused_without_a_trace(lab, event):
    assert serve(lab.provider, event, "request-1")["code"] == "INVALID_REQUEST"
    assert lab.events() == []


@pytest.mark.parametrize("state", ["HELD", "RELEASED", "EXPIRED"])
def test_a_spent_barrier_does_not_hold(lab, state):
    item = {"trial_id": {"S": TRIAL}, "state": {"S": state}}
    lab.client.put_item(TableName=BARRIER, Item=item)
    serve(lab.provider, CALL, "request-1")
    assert lab.types() == ["provider_request_received", "provider_commit_confirmed", "response_sent"]
    assert lab.events()[1]["detail"] == {"barrier": "SPENT"}
    assert lab.barrier_item()["state"] == state


def test_of_two_calls_that_both_saw_it_armed_one_is_held_and_both_commit(lab, monkeypatch):
    lab.arm()
    read = lab.barrier.read

    def read_then_lose(trial_id):
        seen = read(trial_id)
        monkeypatch.undo()
        lab.client.put_item(TableName=BARRIER, Item={"trial_id": {"S": TRIAL}, "state": {"S": "HELD"}})
        return seen

    monkeypatch.setattr(lab.barrier, "read", read_then_lose)
    serve(lab.provider, CALL, "request-1")
    assert lab.types()[1:] == ["provider_request_received", "provider_commit_confirmed", "response_sent"]
    assert lab.events()[2]["detail"] == {"barrier": "SPENT"}
    assert [row["seq"] for row in lab.rows(LEDGER)] == [3]


def test_commit_barrier_and_ledger_are_one_transaction(lab):
    hold(lab)
    (row,) = lab.rows(LEDGER)
    commit = next(event for event in lab.events() if event["type"] == "provider_commit_confirmed")
    barrier = lab.barrier_item()
    assert (row["seq"], barrier["held_event_id"]) == (commit["seq"], commit["event_id"])
    assert barrier["held_dispatch_event_id"] == commit["caused_by"] == row["dispatch_event_id"]
    lab.resume(20_000)


def test_the_hold_ends_at_its_budget_and_not_before(lab):
    hold(lab)
    lab.resume(19_999)
    assert lab.barrier_item()["state"] == "HELD"
    lab.resume(1)
    expired = lab.events()[-1]
    commit = next(event for event in lab.events() if event["type"] == "provider_commit_confirmed")
    assert (expired["type"], expired["elapsed_ms"]) == ("barrier_expired", 20_000)
    assert expired["caused_by"] == commit["event_id"]
    assert lab.barrier_item()["state"] == "EXPIRED"
    # A release that comes after it finds nothing to release.
    assert lab.deliver_timeouts() == [Decision.NOT_HELD]


def test_a_release_that_wins_the_race_against_the_budget_counts(lab, monkeypatch):
    hold(lab)
    expire = lab.barrier.expire

    def release_first(*args):
        monkeypatch.undo()
        assert lab.deliver_timeouts() == [Decision.RELEASE]
        return expire(*args)

    monkeypatch.setattr(lab.barrier, "expire", release_first)
    lab.resume(20_000)
    lab.resume()
    assert lab.types()[-2:] == ["release_signalled", "response_released"]
    assert lab.barrier_item()["state"] == "RELEASED"


def test_the_released_answer_says_how_long_it_was_held(lab):
    hold(lab)
    lab.deliver_timeouts()
    lab.resume(3_200)
    released = lab.events()[-1]
    assert (released["type"], released["elapsed_ms"]) == ("response_released", 3_200)
