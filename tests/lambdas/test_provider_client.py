"""The provider client against servers that stall, drip, reset and lie (CASES D01, D13 to D17)."""

import datetime
import io
import json
import socket
import ssl
import threading
import time
import types

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lambdas.shared.aws import effective_config
from lambdas.shared.provider_client import (
    Answered,
    ProviderClient,
    Refused,
    TimedOut,
    Unknown,
    UnknownReason,
    make_provider_client,
)
from tests.lambdas import servers
from tests.lambdas.servers import ANSWER, Server, http

REQUEST = {"trial_id": "t", "refund_request_id": "ref-poc-001", "amount_minor": 10000, "currency": "BRL"}
DEADLINE_MS = 400
# How long a busy machine may take to notice a deadline. Far below what the servers below would take.
SLACK_MS = 4000


def call(server, monkeypatch, deadline_ms=DEADLINE_MS, scheme="http"):
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"{scheme}://localhost:{server.port}")
    client = ProviderClient(make_provider_client(deadline_ms), "provider", deadline_ms)
    started = time.monotonic()
    outcome = client.refund(REQUEST)
    return outcome, (time.monotonic() - started) * 1000


def test_an_answer_about_our_request_is_answered(monkeypatch):
    with Server(servers.reply(http(ANSWER))) as server:
        outcome, _ = call(server, monkeypatch, deadline_ms=5000)
    assert isinstance(outcome, Answered) and outcome.transaction_id == "tx-1"
    assert 0 <= outcome.elapsed_ms < 5000
    assert server.requests == 1


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(servers.stall, id="stall"),
        pytest.param(servers.drip(http(ANSWER), 0.1), id="header drip"),
        pytest.param(servers.drip_body(http(ANSWER), 0.1), id="body drip"),
    ],
)
def test_d16_the_deadline_is_wall_time_and_closes_the_socket(monkeypatch, behave):
    # Both drips would end well after 10 s, and no single read ever waits longer than 0.1 s.
    with Server(behave) as server:
        outcome, took_ms = call(server, monkeypatch)
        assert isinstance(outcome, TimedOut)
        assert DEADLINE_MS <= outcome.elapsed_ms < DEADLINE_MS + SLACK_MS
        assert DEADLINE_MS <= took_ms < DEADLINE_MS + SLACK_MS
        assert outcome.library_outcome == "cut_off"
        assert server.closed.wait(5), "the server never saw the socket closed"
        assert server.requests == 1


@pytest.mark.parametrize(
    ("behave", "reason"),
    [
        pytest.param(servers.reset, UnknownReason.CONNECTION, id="reset"),
        pytest.param(servers.hang_up, UnknownReason.CONNECTION, id="closed without an answer"),
        pytest.param(
            servers.reply_and_hang_up(http(ANSWER)[:-7]), UnknownReason.CONNECTION, id="shorter than it says"
        ),
        pytest.param(servers.reply(http({"Message": "x"}, "503 Busy")), UnknownReason.HTTP_5XX, id="5xx"),
        pytest.param(
            servers.reply(http({"Message": "x"}, "429 Slow", ["x-amzn-errortype: TooManyRequestsException"])),
            UnknownReason.THROTTLED,
            id="429",
        ),
        pytest.param(
            servers.reply(http({"Message": "x"}, "404 No", ["x-amzn-errortype: ResourceNotFoundException"])),
            UnknownReason.HTTP_OTHER,
            id="no such function",
        ),
        pytest.param(
            servers.reply(
                http({"errorType": "Sandbox.Timedout"}, headers=["X-Amz-Function-Error: Unhandled"])
            ),
            UnknownReason.FUNCTION_ERROR,
            id="function error",
        ),
        pytest.param(servers.reply(http(b"<html>")), UnknownReason.UNPARSABLE_ANSWER, id="no JSON"),
        pytest.param(
            servers.reply(http(b'{"status":"COMMITTED","status":"COMMITTED"}')),
            UnknownReason.UNPARSABLE_ANSWER,
            id="repeated key",
        ),
        pytest.param(
            servers.reply(http(ANSWER | {"amount_minor": 9999})),
            UnknownReason.MISMATCHED_ANSWER,
            id="other amount",
        ),
        pytest.param(
            servers.reply(http(ANSWER | {"currency": "USD"})),
            UnknownReason.MISMATCHED_ANSWER,
            id="other currency",
        ),
        pytest.param(
            servers.reply(http(ANSWER | {"refund_request_id": "ref-2"})),
            UnknownReason.MISMATCHED_ANSWER,
            id="other request",
        ),
        pytest.param(
            servers.reply(http(ANSWER | {"transaction_id": ""})),
            UnknownReason.MISMATCHED_ANSWER,
            id="no transaction",
        ),
        pytest.param(
            servers.reply(http({"status": "REFUSED", "code": "ID_ALREADY_USED", "message": ""})),
            UnknownReason.UNLISTED_CODE,
            id="unlisted code",
        ),
        pytest.param(
            servers.reply(http({"status": "REFUSED", "code": ["INVALID_REQUEST"], "message": ""})),
            UnknownReason.UNLISTED_CODE,
            id="code that is no text",
        ),
    ],
)
def test_d01_whatever_is_not_an_answer_is_unknown_after_one_request(monkeypatch, behave, reason):
    with Server(behave) as server:
        outcome, _ = call(server, monkeypatch, deadline_ms=5000)
        assert isinstance(outcome, Unknown)
        assert outcome.reason is reason
        assert outcome.elapsed_ms < 5000
        assert server.requests == 1


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "400 Bad Request"])
def test_d21_in_process_is_neither_done_nor_failed_whatever_the_http_status(monkeypatch, status):
    with Server(servers.reply(http(ANSWER | {"status": "EM_PROCESSAMENTO"}, status))) as server:
        outcome, _ = call(server, monkeypatch, deadline_ms=5000)
    assert isinstance(outcome, Unknown)
    assert outcome.reason in (UnknownReason.MISMATCHED_ANSWER, UnknownReason.HTTP_OTHER)


def test_d01_a_listed_code_is_a_definite_refusal(monkeypatch):
    refusal = {"status": "REFUSED", "code": "INVALID_REQUEST", "message": "amount"}
    with Server(servers.reply(http(refusal))) as server:
        outcome, _ = call(server, monkeypatch, deadline_ms=5000)
    assert isinstance(outcome, Refused) and outcome.code == "INVALID_REQUEST"


def test_nobody_listening_is_unknown(monkeypatch):
    with Server(servers.stall) as server:
        pass
    outcome, _ = call(server, monkeypatch, deadline_ms=5000)
    assert isinstance(outcome, Unknown) and outcome.reason is UnknownReason.CONNECTION


def test_d16_a_stuck_name_lookup_counts_against_the_deadline_and_sends_nothing_later(monkeypatch):
    release, resolved = threading.Event(), threading.Event()
    lookup = socket.getaddrinfo

    def stuck(*args, **kwargs):
        release.wait(10)
        try:
            return lookup(*args, **kwargs)
        finally:
            resolved.set()

    with Server(servers.reply(http(ANSWER))) as server:
        monkeypatch.setattr("lambdas.shared.wire.socket.getaddrinfo", stuck)
        outcome, took_ms = call(server, monkeypatch)
        assert isinstance(outcome, TimedOut)
        assert outcome.library_outcome == "pending"
        assert took_ms < DEADLINE_MS + SLACK_MS
        release.set()
        assert resolved.wait(5)
        monkeypatch.undo()
        time.sleep(0.2)
        assert server.requests == 0


class LateLibrary:
    """A botocore client in shape, which answers 200 whenever it likes and cannot be interrupted."""

    def __init__(self, answering):
        self._answering = answering
        self.meta = types.SimpleNamespace(
            endpoint_url="http://localhost", events=types.SimpleNamespace(register=lambda *_: None)
        )

    def invoke(self, **_):
        self._answering()
        return {"Payload": io.BytesIO(json.dumps(ANSWER).encode())}


def test_d16_a_late_200_is_a_late_response_and_never_an_answer():
    outcome = ProviderClient(LateLibrary(lambda: time.sleep(0.2)), "provider", 100).refund(REQUEST)
    assert isinstance(outcome, TimedOut)
    assert outcome.library_outcome == "late_response"
    assert outcome.elapsed_ms >= 100


def test_d16_an_answer_stamped_at_the_deadline_is_late_even_if_nobody_waited_that_long():
    now = [0]
    library = LateLibrary(lambda: now.__setitem__(0, 3_000_000_000))
    outcome = ProviderClient(library, "provider", 3000, monotonic_ns=lambda: now[0]).refund(REQUEST)
    assert isinstance(outcome, TimedOut)
    assert (outcome.library_outcome, outcome.elapsed_ms) == ("late_response", 3000)


def test_the_next_call_of_a_warm_client_has_a_wire_of_its_own(monkeypatch):
    turns = iter([servers.stall, servers.reply(http(ANSWER))])
    with Server(lambda connection: next(turns)(connection)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{server.port}")
        client = ProviderClient(make_provider_client(DEADLINE_MS), "provider", DEADLINE_MS)
        assert isinstance(client.refund(REQUEST), TimedOut)
        assert isinstance(client.refund(REQUEST), Answered)
        assert server.requests == 2


def test_d13_the_effective_configuration_names_mode_and_total():
    config = effective_config(make_provider_client(3000))
    assert config == {
        "retries": {"mode": "standard", "total_max_attempts": 1},
        "connect_timeout": 3,
        "read_timeout": 3,
    }


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for localhost."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(built.public_bytes(pem))
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder


@pytest.fixture
def tls(certificate, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return lambda connection: context.wrap_socket(connection, server_side=True)


def test_https_is_answered(monkeypatch, tls):
    with Server(servers.reply(http(ANSWER)), wrap=tls) as server:
        outcome, _ = call(server, monkeypatch, deadline_ms=5000, scheme="https")
    assert isinstance(outcome, Answered)


def test_https_refuses_a_stranger(monkeypatch, tls):
    monkeypatch.delenv("AWS_CA_BUNDLE")
    with Server(servers.reply(http(ANSWER)), wrap=tls) as server:
        outcome, _ = call(server, monkeypatch, deadline_ms=5000, scheme="https")
        assert isinstance(outcome, Unknown)
        assert (outcome.reason, outcome.library_outcome) == ("CONNECTION", "error:SSLCertVerificationError")
        assert server.requests == 0


@pytest.mark.parametrize(
    "behave", [servers.stall, servers.drip_body(http(ANSWER), 0.1)], ids=["stall", "body drip"]
)
def test_d16_https_keeps_the_deadline_too(monkeypatch, tls, behave):
    with Server(behave, wrap=tls) as server:
        outcome, took_ms = call(server, monkeypatch, scheme="https")
        assert isinstance(outcome, TimedOut) and outcome.library_outcome == "cut_off"
        assert took_ms < DEADLINE_MS + SLACK_MS
        assert server.closed.wait(5)
        assert server.requests == 1


def test_d16_a_handshake_that_never_ends_is_cut_at_the_deadline(monkeypatch, tls):
    closed = threading.Event()

    def never(connection):
        while connection.recv(1024):
            pass
        closed.set()
        raise OSError

    with Server(servers.stall, wrap=never) as server:
        outcome, took_ms = call(server, monkeypatch, scheme="https")
        assert isinstance(outcome, TimedOut)
        assert took_ms < DEADLINE_MS + SLACK_MS
        assert closed.wait(5)
        assert server.requests == 0
