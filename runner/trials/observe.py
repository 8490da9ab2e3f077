"""Watching a trial without touching it: attributes, consistent reads, listings. Never a receive.

A trial is over when its request is finished or dead-lettered, its queues were at rest for N
samples in a row, no provider call can still commit, every durable execution is terminal, and
two consistent ledger snapshots in a row are equal (DESIGN 8).
"""

from typing import Any

from runner.clock import SystemClock
from runner.names import CONVENTIONAL, DURABLE
from runner.protocol import Protocol
from runner.records import Reads
from runner.targets.target import Lab
from runner.trials.collect import TERMINAL_STATUSES, durable_executions, ledger_query, partition_query
from runner.trials.trial import Trial

QUEUE_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)

PROVIDER_ENDS = ("response_sent", "response_released", "barrier_expired")


class Observation:
    """What is known of one running trial. `look` refreshes it, the rest only reads it."""

    def __init__(self, lab: Lab, protocol: Protocol, clock: SystemClock, trial: Trial):
        self._lab = lab
        self._protocol = protocol
        self._clock = clock
        self._trial = trial
        self._events: dict[int, dict[str, Any]] = {}
        self._seen_at: dict[int, float] = {}
        self._request: dict[str, Any] = {}
        self._at_rest = 0
        self._dead_lettered = 0

    def baseline(self) -> None:
        """Sample the queues once before anything is sent: what the DLQ holds now is not the trial's."""
        self._sample_queues()
        self._at_rest = 0

    def look(self) -> list[dict[str, Any]]:
        """Sample the queues, read the journal, and return the events not seen before."""
        self._sample_queues()
        fresh = []
        for item in self._items(partition_query(self._lab.journal_table, self._trial.trial_id)):
            if "seq" in item and item["seq"] not in self._events:
                self._events[item["seq"]] = item
                self._seen_at[item["seq"]] = self._clock.monotonic()
                fresh.append(item)
            elif item["entry"] == "REQUEST":
                self._request = item
        return sorted(fresh, key=lambda event: event["seq"])

    def _items(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        reads = Reads(self._clock.now_ms)
        pages = reads.all_pages("watch", self._lab.client("dynamodb"), "Query", request)
        return [plain_item(item) for page in pages for item in page["Items"]]

    def _sample_queues(self) -> None:
        sqs, trial = self._lab.client("sqs"), self._trial
        source, dlq = (
            trial.queues.once(
                read,
                sqs,
                "GetQueueAttributes",
                {"QueueUrl": url, "AttributeNames": list(QUEUE_COUNTS)},
                of=url,
            )
            for read, url in (
                ("queue_source", self._lab.queue_url(trial.variant)),
                ("queue_dlq", self._lab.dlq_url(trial.variant)),
            )
        )
        at_rest = source is not None and dlq is not None and _total(source) == 0
        self._at_rest = self._at_rest + 1 if at_rest else 0
        if dlq is not None:
            # What an earlier trial left in the DLQ is not this trial's.
            if trial.dlq_before is None:
                trial.dlq_before = _total(dlq)
            self._dead_lettered = _total(dlq) - trial.dlq_before

    def finished(self) -> bool:
        """Whether the request is finished, or its message was dead-lettered."""
        return self._request.get("status") == "FINISHED" or self._dead_lettered > 0

    def quiescent(self) -> bool:
        """Whether nothing of this trial can move any more. Cheap conditions come first."""
        return (
            self.finished()
            and self._at_rest >= self._protocol.quiescence.samples
            and not self._calls_in_flight()
            and self._executions_terminal()
            and self._ledger_at_rest()
        )

    def _calls_in_flight(self) -> list[str]:
        """Return the dispatches that could still commit or answer.

        A dispatch counts until the provider recorded its end, or until a provider that never
        recorded one must have been killed by its function timeout.
        """
        ended = {e.get("transaction_id") for e in self._of_type(*PROVIDER_ENDS)}
        answered = {
            commit["caused_by"]
            for commit in self._of_type("provider_commit_confirmed")
            if commit["transaction_id"] in ended
        }
        limit_s = self._protocol.caller.deadline_ms / 1000 + self._protocol.provider.function_timeout_s
        return [
            event["event_id"]
            for event in self._of_type("dispatch_started")
            if event["event_id"] not in answered
            and self._clock.monotonic() - self._seen_at[event["seq"]] < limit_s
        ]

    def _of_type(self, *types: str) -> list[dict[str, Any]]:
        return [e for _, e in sorted(self._events.items()) if e["type"] in types]

    def _executions_terminal(self) -> bool:
        if self._trial.variant != DURABLE:
            return True
        reads = Reads(self._clock.now_ms)
        own = durable_executions(reads, self._lab, self._trial)
        if any("error" in line for line in reads.lines):
            return False  # a listing that was refused says nothing of what runs (CASES D09)
        # Only an execution can have finished the request, so a listing without one is not up to date.
        listed = bool(own) or self._dead_lettered > 0
        return listed and all(e["Status"] in TERMINAL_STATUSES for e in own.values())

    def _ledger_at_rest(self) -> bool:
        request = ledger_query(self._lab, self._trial.trial_id)
        return self._items(request) == self._items(request)

    def untouched(self) -> bool:
        """Whether nothing but the runner has acted on the trial, and its queues are at rest."""
        acted = any(event["source"] != "runner" for event in self._events.values())
        return not acted and self._at_rest >= self._protocol.quiescence.samples

    def waiting_for(self) -> str:
        """Say in a few words what the trial is waiting for, with an expected time where known."""
        if self.finished():
            return f"settling: {self._at_rest} of {self._protocol.quiescence.samples} samples at rest"
        if not self._events:
            return "first event"
        timeouts = self._of_type("caller_timeout_recorded")
        received = self._of_type("delivery_received")
        if not timeouts:
            return "the provider's answer" if received else "delivery from the queue"
        if self._of_type("dispatch_started")[-1]["seq"] > timeouts[-1]["seq"]:
            return "the retry's answer"
        if self._trial.variant == CONVENTIONAL:
            due_ms = received[-1]["at_ms"] + self._protocol.conventional.visibility_timeout_s * 1000
            return f"SQS redelivery in {_seconds_until(due_ms, self._clock)} s"
        due_ms = timeouts[-1]["at_ms"] + self._protocol.durable.step_retry_delay_s * 1000
        return f"durable step retry in {_seconds_until(due_ms, self._clock)} s"


def plain_item(item: dict[str, Any]) -> dict[str, Any]:
    """Turn a low-level DynamoDB item into plain values; numbers are integers."""
    return {key: _plain(value) for key, value in item.items()}


def _plain(value: dict[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    if kind == "N":
        return int(inner)
    if kind == "M":
        return plain_item(inner)
    return inner


def _total(attributes: dict[str, Any]) -> int:
    return sum(int(attributes["Attributes"][name]) for name in QUEUE_COUNTS)


def _seconds_until(due_ms: int, clock: SystemClock) -> int:
    return max(0, (due_ms - clock.now_ms()) // 1000)
