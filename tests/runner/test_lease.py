"""One runner at a time on one stack, told by a conditional item."""

import time

import boto3
import pytest
from moto import mock_aws

from runner.errors import UsageError
from runner.runs import lease as leases
from runner.runs.lease import KEY, TERM_S, Lease, demand_free

TABLE = "journal"


@pytest.fixture
def client(monkeypatch):
    for name, value in (("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "x")):
        monkeypatch.setenv(name, value)
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": "trial_id", "KeyType": "HASH"},
                {"AttributeName": "entry", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("trial_id", "entry")
            ],
        )
        yield client


class Clock:
    now = 1_000_000

    def now_ms(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lease(client, clock):
    made = []

    def make(owner, lost=lambda: None):
        made.append(Lease(client, TABLE, owner, clock.now_ms, lost))
        return made[-1]

    yield make
    for one in made:
        one.release()


def holder(client):
    return client.get_item(TableName=TABLE, Key=KEY).get("Item", {}).get("owner", {}).get("S")


def test_a_second_owner_is_refused_and_told_who_holds_it(lease, client):
    lease("run-1").take()
    with pytest.raises(UsageError, match="run-1") as refusal:
        lease("run-2").take()
    assert refusal.value.exit_code == 64
    assert "runner resume run-1" in str(refusal.value)
    assert holder(client) == "run-1"


def test_a_held_stack_is_left_alone_before_anything_is_deployed(lease, client, clock):
    demand_free(client, TABLE, clock.now_ms())
    lease("run-1").take()
    with pytest.raises(UsageError, match="run-1"):
        demand_free(client, TABLE, clock.now_ms())
    demand_free(client, TABLE, clock.now_ms() + TERM_S * 1000 + 1)
    assert holder(client) == "run-1", "asking takes nothing"


def test_a_released_lease_is_free(lease, client):
    first = lease("run-1")
    first.take()
    first.release()
    assert holder(client) is None
    lease("run-2").take()
    assert holder(client) == "run-2"


def test_an_expired_lease_may_be_taken_and_one_that_is_not_may_not(lease, client, clock):
    lease("run-1").take()
    clock.now += TERM_S * 1000
    with pytest.raises(UsageError):
        lease("run-2").take()
    clock.now += 1
    lease("run-2").take()
    assert holder(client) == "run-2"


def test_the_same_run_may_take_its_lease_again(lease, client):
    lease("run-1").take()
    lease("run-1").take()
    assert holder(client) == "run-1"


def test_releasing_what_another_has_taken_leaves_it_alone(lease, client, clock):
    first = lease("run-1")
    first.take()
    clock.now += TERM_S * 1000 + 1
    lease("run-2").take()
    first.release()
    assert holder(client) == "run-2"


def test_it_is_renewed_while_held_and_its_loss_is_told_once(lease, client, clock, monkeypatch):
    monkeypatch.setattr(leases, "RENEW_EVERY_S", 0.01)
    lost = []
    lease("run-1", lambda: lost.append("run-1")).take()
    clock.now += 30_000
    wait_for(lambda: until(client) == clock.now + TERM_S * 1000)
    taken = {**KEY, "owner": {"S": "run-2"}, "until_ms": {"N": str(clock.now + 10**9)}}
    client.put_item(TableName=TABLE, Item=taken)
    wait_for(lambda: lost == ["run-1"])


def until(client):
    return int(client.get_item(TableName=TABLE, Key=KEY)["Item"]["until_ms"]["N"])


def wait_for(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    assert condition()
