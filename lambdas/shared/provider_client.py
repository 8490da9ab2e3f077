"""The caller's only way to the provider: one request on the wire, one wall-clock deadline.

    start ---- connect, send, read the whole answer ----> deadline
      |  any answer before it is classified                  |  the socket is shut, TimedOut
      +-------------------- the caller's monotonic clock ----+

botocore serialises, signs and parses; the exchange itself runs on a socket of ours (`wire`), in a
thread of its own, so that name lookup, connect and dripping bytes all count against the deadline.
Which outcome is definite (the only two that say whether money moved in this attempt):

    Answered   the provider committed and its answer is about our request
    Refused    the provider refused with a code of DEFINITE_REFUSALS
    TimedOut   the deadline passed; whatever comes later is never an answer
    Unknown    everything else: resets, 5xx, throttling, function errors, strange bodies, strange codes
"""

import json
import os
import queue
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ClientError
from botocore.httpsession import get_cert_path

from lambdas.shared import strict
from lambdas.shared.aws import make_client
from lambdas.shared.wire import Wire

# By these codes the provider says that it moved no money. A code that is not listed is Unknown.
DEFINITE_REFUSALS = frozenset({"INVALID_REQUEST"})

# How long a shut exchange gets to say how it ended. It only adds to what the journal knows.
GRACE_S = 0.25
# What became of the exchange of a call that timed out: an answer after all, an end by our own hand, no end.
ANSWERED_LATE, CUT_OFF, STILL_PENDING = "late_response", "cut_off", "pending"

ANSWER_KEYS = {"status", "transaction_id", "refund_request_id", "amount_minor", "currency"}
REFUSAL_KEYS = {"status", "code", "message"}


class UnknownReason(StrEnum):
    CONNECTION = "CONNECTION"
    THROTTLED = "THROTTLED"
    HTTP_5XX = "HTTP_5XX"
    HTTP_OTHER = "HTTP_OTHER"
    FUNCTION_ERROR = "FUNCTION_ERROR"
    UNPARSABLE_ANSWER = "UNPARSABLE_ANSWER"
    MISMATCHED_ANSWER = "MISMATCHED_ANSWER"
    UNLISTED_CODE = "UNLISTED_CODE"


@dataclass(frozen=True)
class Answered:
    transaction_id: str
    elapsed_ms: int


@dataclass(frozen=True)
class Refused:
    code: str
    elapsed_ms: int


@dataclass(frozen=True)
class TimedOut:
    library_outcome: str
    elapsed_ms: int


@dataclass(frozen=True)
class Unknown:
    reason: UnknownReason
    library_outcome: str
    elapsed_ms: int


Outcome = Answered | Refused | TimedOut | Unknown


def make_provider_client(deadline_ms: int) -> Any:
    """The botocore client. The deadline is kept elsewhere; its own timeouts only say the same to a reader."""
    seconds = -(-deadline_ms // 1000)
    return make_client("lambda", connect_timeout_s=seconds, read_timeout_s=seconds, total_max_attempts=1)


class ProviderClient:
    """Calls the provider function. It takes over the given client: each Invoke goes over a wire of ours."""

    def __init__(
        self,
        client: Any,
        function: str,
        deadline_ms: int,
        *,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._client, self._function, self._deadline_ms = client, function, deadline_ms
        self._monotonic_ns = monotonic_ns
        self._tls = _tls_context() if client.meta.endpoint_url.startswith("https:") else None
        # A call stuck in a name lookup beyond its deadline must find its own shut wire, not the next one.
        self._thread = threading.local()
        client.meta.events.register("before-send.lambda.Invoke", self._send)

    def refund(self, request: Mapping[str, Any]) -> Outcome:
        """Dispatch one refund request and say, at the deadline at the latest, what is known about it."""
        started_ns = self._monotonic_ns()
        deadline_ns = started_ns + self._deadline_ms * 1_000_000
        wire = Wire(deadline_ns, self._tls, self._monotonic_ns)
        results: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        work = threading.Thread(target=self._exchange, args=(wire, request, results), daemon=True)
        work.start()
        try:
            ended_ns, result = self._await(results, deadline_ns)
        except queue.Empty:
            elapsed_ms = _ms(self._monotonic_ns() - started_ns)
            wire.shut()
            return TimedOut(_late_outcome(results), elapsed_ms)
        elapsed_ms = _ms(ended_ns - started_ns)
        if ended_ns >= deadline_ns:
            return TimedOut(ANSWERED_LATE if isinstance(result, dict) else _describe(result), elapsed_ms)
        return classify(result, request, elapsed_ms)

    def _send(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        return self._thread.wire.send(request)

    def _exchange(self, wire: Wire, request: Mapping[str, Any], results: queue.SimpleQueue) -> None:
        self._thread.wire = wire
        try:
            response = self._client.invoke(FunctionName=self._function, Payload=json.dumps(request).encode())
            result: Any = {"FunctionError": response.get("FunctionError"), "body": response["Payload"].read()}
        except Exception as error:  # whatever it is, it becomes an outcome and never ends the caller's thread
            result = error
        results.put((self._monotonic_ns(), result))

    def _await(self, results: queue.SimpleQueue, deadline_ns: int) -> tuple[int, Any]:
        while (left_ns := deadline_ns - self._monotonic_ns()) > 0:
            try:
                return results.get(timeout=left_ns / 1e9)
            except queue.Empty:
                continue  # a wait may end a little early; the clock alone decides
        return results.get_nowait()


def classify(result: Any, request: Mapping[str, Any], elapsed_ms: int) -> Outcome:
    """What an exchange that ended in time says about the money."""
    if isinstance(result, ClientError):
        return Unknown(_http_reason(result), _describe(result), elapsed_ms)
    if isinstance(result, Exception):
        return Unknown(UnknownReason.CONNECTION, _describe(result), elapsed_ms)
    if result["FunctionError"]:
        return Unknown(UnknownReason.FUNCTION_ERROR, _describe(result), elapsed_ms)
    try:
        answer = strict.load_object(result["body"])
    except strict.Malformed:
        return Unknown(UnknownReason.UNPARSABLE_ANSWER, _describe(result), elapsed_ms)
    if answer.get("status") == "REFUSED" and set(answer) == REFUSAL_KEYS:
        code = str(answer["code"])
        if code in DEFINITE_REFUSALS:
            return Refused(code, elapsed_ms)
        return Unknown(UnknownReason.UNLISTED_CODE, f"refused:{code:.80}", elapsed_ms)
    if answer.get("status") == "COMMITTED" and _is_about(answer, request):
        return Answered(answer["transaction_id"], elapsed_ms)
    return Unknown(UnknownReason.MISMATCHED_ANSWER, _describe(result), elapsed_ms)


def _is_about(answer: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    try:
        strict.exact_keys("answer", answer, ANSWER_KEYS)
        strict.text(answer["transaction_id"], "transaction_id")
        strict.whole(answer["amount_minor"], "amount_minor")
    except strict.Malformed:
        return False
    return all(answer[name] == request[name] for name in ("refund_request_id", "amount_minor", "currency"))


def _http_reason(error: ClientError) -> UnknownReason:
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    if status == 429:
        return UnknownReason.THROTTLED
    return UnknownReason.HTTP_5XX if status >= 500 else UnknownReason.HTTP_OTHER


def _describe(result: Any) -> str:
    """How the library saw it, apart from what the deadline says."""
    if isinstance(result, ClientError):
        return f"error:{result.response['Error']['Code']}"
    if isinstance(result, Exception):
        return f"error:{type(result).__name__}"
    return f"function_error:{result['FunctionError']}" if result["FunctionError"] else "response"


def _late_outcome(results: queue.SimpleQueue) -> str:
    try:
        _, result = results.get(timeout=GRACE_S)
    except queue.Empty:
        return STILL_PENDING
    # After the shut an error says nothing about the provider, whatever its name.
    return ANSWERED_LATE if isinstance(result, dict) else CUT_OFF


def _ms(nanoseconds: int) -> int:
    return nanoseconds // 1_000_000


def _tls_context() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True))
