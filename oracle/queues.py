"""Samples of the trial's source queue and DLQ, read through attributes only (section 7)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from oracle.finding import Finding, Where, breach
from oracle.reads import Record

COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_NATURAL = re.compile(r"(0|[1-9][0-9]{0,15})\Z")


@dataclass(slots=True)
class Sample:
    """One GetQueueAttributes; a count that could not be read is None and never zero."""

    record: Record
    counts: tuple[int | None, ...]

    @property
    def where(self) -> Where:
        return self.record.where

    @property
    def empty(self) -> bool:
        return self.counts == (0, 0, 0)


@dataclass(slots=True)
class Queues:
    source: list[Sample] = field(default_factory=list)
    dlq: list[Sample] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def decode_queues(records: list[Record], urls: dict[str, str | None]) -> Queues:
    """`urls` are the stack's queues of the variant: a sample of another says nothing here."""
    queues = Queues()
    counted: dict[int, tuple[int | None, ...]] = {}  # by response, which repeated samples share
    taken = set()
    for record in records:
        key = id(record.response)
        if (record.read, record.at_ms, key) in taken:
            continue  # the same line again is the same sample, not another
        taken.add((record.read, record.at_ms, key))
        samples, url = (
            (queues.source, urls["source"]) if record.read == "queue_source" else (queues.dlq, urls["dlq"])
        )
        # A sample is a read of its own, never a part of another.
        if record.page != 1:
            queues.findings.append(breach("R03", "a queue sample is not page 1", record.where / "page"))
        if record.marker_in is not None or record.marker_out is not None:
            queues.findings.append(breach("R04", "a queue sample has a marker", record.where))
        if record.error:
            queues.findings.append(breach("R08", f"{record.read}: {record.error['code']}", record.where))
        elif url is not None and record.request.get("QueueUrl") != url:
            queues.findings.append(
                breach("R09", "not the trial's own queue", record.where / "request" / "QueueUrl")
            )
            continue
        if key not in counted:
            counted[key] = _counts(record.response.get("Attributes"))
        samples.append(Sample(record, counted[key]))
    return queues


def _counts(attributes) -> tuple[int | None, ...]:
    values = [attributes.get(name) if isinstance(attributes, dict) else None for name in COUNTS]
    return tuple(int(v) if isinstance(v, str) and _NATURAL.match(v) else None for v in values)
