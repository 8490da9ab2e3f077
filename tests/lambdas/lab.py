"""All handlers in one process on moto, with clocks and ids that the test controls.

moto tears transactions that overlap, so exactly one thread ever runs: a held provider hands the
control back at its first sleep and gets it again from `Lab.resume`.
"""

import contextlib
import itertools
import json
import threading
from dataclasses import replace

from lambdas.caller.attempt import Caller
from lambdas.provider.refunds import Provider, serve
from lambdas.release.controller import Controller, on_record
from lambdas.shared.aws import make_dynamodb_client
from lambdas.shared.barrier import BarrierTable
from lambdas.shared.journal import Journal
from lambdas.shared.provider_client import TimedOut, classify

LEDGER, JOURNAL, BARRIER = "ledger", "journal", "barrier"
DEADLINE_MS = 3000
TRIAL = "trial-1"
REQUEST = {
    "refund_request_id": "ref-poc-001",
    "payment_id": "pay-poc-001",
    "captured_minor": 10000,
    "approved_minor": 10000,
    "currency": "BRL",
}


def sqs_event(receive_count=1, request=REQUEST, **body):
    record = {
        "messageId": "message-1",
        "body": json.dumps({"trial_id": TRIAL, "request": request, **body}),
        "attributes": {"ApproximateReceiveCount": str(receive_count)},
    }
    return {"Records": [record]}


def plain(value):
    """DynamoDB's typed form as plain Python."""
    ((kind, inner),) = value.items()
    if kind == "M":
        return {name: plain(member) for name, member in inner.items()}
    return int(inner) if kind == "N" else inner


class Lab:
    """The three tables and what works on them. `refund` reaches the provider as the wire would."""

    def __init__(self):
        self.client = make_dynamodb_client()
        self._create_tables()
        self.ids = itertools.count(1)
        self.held_ns = 0
        self.barrier = BarrierTable(self.client, BARRIER)
        self.provider = Provider(
            self.journal("provider"),
            self.barrier,
            LEDGER,
            hold_budget_s=20,
            barrier_poll_ms=100,
            now_ms=lambda: 1,
            monotonic_ns=lambda: self.held_ns,
            sleep=self._held,
            new_id=lambda: f"tx-{next(self.ids)}",
        )
        self.controller = Controller(self.journal("release"), self.barrier, DEADLINE_MS)
        self.caller = Caller(self.journal("caller"), self.refund, DEADLINE_MS)
        self.runner = self.journal("runner")
        self._lab_turn, self._provider_turn = threading.Event(), threading.Event()
        self._thread = None
        self._answer = None

    def journal(self, source, now_ms=lambda: 1):
        return Journal(
            self.client,
            JOURNAL,
            source,
            now_ms=now_ms,
            new_id=lambda: f"{source}-{next(self.ids)}",
            sleep=lambda _: None,
        )

    def arm(self):
        item = {"trial_id": {"S": TRIAL}, "state": {"S": "ARMED"}}
        put = {"Put": {"TableName": BARRIER, "Item": item}}
        self.runner.append(TRIAL, "barrier_armed", companions=[put])

    def refund(self, request):
        """One call of the provider. While it is held, the caller's deadline passes."""
        self._answer = None
        self._thread = threading.Thread(target=self._serve, args=(request,))
        self._thread.start()
        self._hand_over_to_lab()
        if self._answer is None:
            return TimedOut("pending", DEADLINE_MS + 7)
        return classify({"FunctionError": None, "body": json.dumps(self._answer)}, request, 12)

    def resume(self, later_ms=0):
        """Let the held provider poll again, `later_ms` later on its own clock."""
        self.held_ns += later_ms * 1_000_000
        self._lab_turn.clear()
        self._provider_turn.set()
        self._hand_over_to_lab()

    def _serve(self, request):
        with contextlib.suppress(KeyboardInterrupt):
            self._answer = serve(self.provider, request, "provider-request-1")
        self._lab_turn.set()

    def _held(self, _):
        self._lab_turn.set()
        assert self._provider_turn.wait(10)
        self._provider_turn.clear()

    def _hand_over_to_lab(self):
        assert self._lab_turn.wait(10)
        self._lab_turn.clear()

    def deliver_timeouts(self, **overrides):
        """What the stream mapping does: every recorded timeout goes to the release controller."""
        controller = replace(self.controller, **overrides)
        return [
            on_record(
                controller, {"eventName": "INSERT", "dynamodb": {"NewImage": item}}, "release-request-1"
            )
            for item in self._query(JOURNAL)
            if item.get("type") == {"S": "caller_timeout_recorded"}
        ]

    def rows(self, table):
        return [{name: plain(value) for name, value in item.items()} for item in self._query(table)]

    def events(self):
        return [row for row in self.rows(JOURNAL) if row["entry"].startswith("EVENT#")]

    def types(self):
        return [event["type"] for event in self.events()]

    def entry(self, name):
        return next((row for row in self.rows(JOURNAL) if row["entry"] == name), None)

    def barrier_item(self):
        return next(iter(self.rows(BARRIER)), None)

    def _query(self, table):
        answer = self.client.query(
            TableName=table,
            KeyConditionExpression="trial_id = :t",
            ExpressionAttributeValues={":t": {"S": TRIAL}},
            ConsistentRead=True,
        )
        return answer["Items"]

    def _create_tables(self):
        for name, sort_key in ((LEDGER, "transaction_id"), (JOURNAL, "entry"), (BARRIER, None)):
            keys = [key for key in ("trial_id", sort_key) if key]
            self.client.create_table(
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
                KeySchema=[
                    {"AttributeName": key, "KeyType": kind}
                    for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
                ],
            )
