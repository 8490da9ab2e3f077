"""How often botocore really sends one call: the measured table, pinned (CASES D13, D14, D15, D17).

This file alone may write the ambiguous word `max_attempts`: it is here to show what it does. Requests
are counted by a server that stalls until the read timeout, never taken from a configuration.
"""

import types

import botocore.session
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

from lambdas.shared.aws import make_client
from tests.lambdas import servers
from tests.lambdas.servers import Server

READ_TIMEOUT_S = 0.15
CALLS = {
    "lambda": lambda client: client.invoke(FunctionName="f", Payload=b"{}"),
    "dynamodb": lambda client: client.put_item(TableName="t", Item={"k": {"S": "v"}}),
    "sqs": lambda client: client.send_message(QueueUrl="http://localhost/1/q", MessageBody="m"),
}


@pytest.fixture
def stalling(monkeypatch):
    # Only the waits between the requests are left out; the requests are real.
    monkeypatch.setattr("botocore.endpoint.time", types.SimpleNamespace(sleep=lambda _: None))
    with Server(servers.stall) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        yield server


def requests_of(server, service, retries):
    config = Config(read_timeout=READ_TIMEOUT_S, **({} if retries is None else {"retries": retries}))
    client = botocore.session.get_session().create_client(service, region_name="us-east-1", config=config)
    with pytest.raises(ReadTimeoutError):
        CALLS[service](client)
    return server.requests


@pytest.mark.parametrize(
    ("service", "retries", "environment", "expected"),
    [
        # D13, D15: the defaults of this version. Anything but one request is a duplicate of ours.
        ("lambda", None, {}, 3),
        ("dynamodb", None, {}, 4),
        ("sqs", None, {}, 3),
        ("lambda", {"mode": "standard"}, {}, 3),
        ("dynamodb", {"mode": "standard"}, {}, 4),
        # D14: one word, two meanings.
        ("lambda", {"max_attempts": 0}, {}, 1),
        ("lambda", {"max_attempts": 1}, {}, 2),
        ("lambda", {"total_max_attempts": 1}, {}, 1),
        ("dynamodb", {"total_max_attempts": 1}, {}, 1),
        ("sqs", {"total_max_attempts": 1}, {}, 1),
        ("lambda", {"total_max_attempts": 2}, {}, 2),
        ("lambda", None, {"AWS_MAX_ATTEMPTS": "1"}, 1),
        ("lambda", {"max_attempts": 1}, {"AWS_MAX_ATTEMPTS": "1"}, 2),
        ("lambda", {"mode": "standard", "total_max_attempts": 1}, {"AWS_MAX_ATTEMPTS": "5"}, 1),
    ],
)
def test_d14_requests_on_the_wire_for_one_call(
    stalling, monkeypatch, service, retries, environment, expected
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert requests_of(stalling, service, retries) == expected


def test_d14_zero_in_the_environment_is_refused_at_client_creation(stalling, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "0")
    with pytest.raises(Exception, match="max_attempts") as refused:
        requests_of(stalling, "lambda", None)
    assert type(refused.value).__name__ == "InvalidMaxRetryAttemptsError"


@pytest.mark.parametrize("service", ["lambda", "dynamodb"])
def test_d13_our_own_factory_sends_what_it_says(stalling, service):
    client = make_client(service, connect_timeout_s=1, read_timeout_s=1, total_max_attempts=1)
    with pytest.raises(ReadTimeoutError):
        CALLS[service](client)
    assert stalling.requests == 1


@pytest.mark.parametrize(("method", "expected"), [("POST", 1), ("PUT", 4), ("GET", 4)])
def test_d17_why_the_wire_does_not_use_urllib3_defaults(stalling, method, expected):
    with pytest.raises(urllib3.exceptions.HTTPError):
        urllib3.PoolManager().request(
            method, f"http://127.0.0.1:{stalling.port}/", body=b"x", timeout=READ_TIMEOUT_S
        )
    assert stalling.requests == expected
