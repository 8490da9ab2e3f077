"""Read records: one line per page of an AWS read, with its request, response and markers (section 4 of
FORMAT.md).

Nothing here knows what the pages mean; it says whether a read is whole, so that a marker that leads
nowhere is never mistaken for the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from oracle.finding import Finding, Where, breach
from oracle.shape import Shape


class Kind(NamedTuple):
    role: str
    service: str
    operation: str
    start: str | None = None  # request member that resumes a paged read
    next: str | None = None  # response member that says there is more


KINDS = {
    "journal": Kind("journal", "dynamodb", "Query", "ExclusiveStartKey", "LastEvaluatedKey"),
    "barrier": Kind("journal", "dynamodb", "GetItem"),
    "ledger_snapshot": Kind("ledger", "dynamodb", "Query", "ExclusiveStartKey", "LastEvaluatedKey"),
    "queue_source": Kind("queues", "sqs", "GetQueueAttributes"),
    "queue_dlq": Kind("queues", "sqs", "GetQueueAttributes"),
    "versions": Kind("durable", "lambda", "ListVersionsByFunction", "Marker", "NextMarker"),
    "executions": Kind("durable", "lambda", "ListDurableExecutionsByFunction", "Marker", "NextMarker"),
    "execution": Kind("durable", "lambda", "GetDurableExecution"),
    "history": Kind("durable", "lambda", "GetDurableExecutionHistory", "Marker", "NextMarker"),
    "logs": Kind("logs", "logs", "FilterLogEvents", "nextToken", "nextToken"),
}
_SHAPE = Shape(
    {
        "read": str,
        "service": str,
        "operation": str,
        "page": int,
        "of": str,
        "at_ms": int,
        "request": dict,
        "response?": dict,
        "error?": Shape({"code": str, "message": str}),
        "marker_in": object,
        "marker_out": object,
    }
)
_ALWAYS = {"read", "service", "operation", "page", "of", "at_ms", "request", "marker_in", "marker_out"}
_MEMBERS = ({*_ALWAYS, "response"}, {*_ALWAYS, "error"})
_SNAPSHOT = re.compile(r"ledger_snapshot_([1-9][0-9]{0,5})\Z")


@dataclass(slots=True)
class Record:
    path: str
    line: int
    read: str
    of: str
    page: int
    at_ms: int
    request: dict
    response: dict
    error: dict | None
    marker_in: object
    marker_out: object

    @property
    def where(self) -> Where:
        return Where(self.path, f"/{self.line}")

    def again(self, line: int, at_ms: int) -> Record:
        """The same read of the same answer at another line and time."""
        return Record(
            self.path,
            line,
            self.read,
            self.of,
            self.page,
            at_ms,
            self.request,
            self.response,
            self.error,
            self.marker_in,
            self.marker_out,
        )

    @property
    def kind(self) -> Kind:
        return KINDS[kind_name(self.read)]


def kind_name(read: str) -> str:
    return "ledger_snapshot" if _SNAPSHOT.match(read) else read


def snapshot_number(read: str) -> int | None:
    match = _SNAPSHOT.match(read)
    return int(match[1]) if match else None


def decode(path: str, role: str, lines) -> tuple[list[Record], list[Finding]]:
    """The records of one .jsonl file; malformed ones become findings and the rest still count."""
    records, findings = [], []
    known: dict[int, Record] = {}
    for number, value in lines:
        # A line that the loader found to repeat an earlier one shares its members, so it is checked already.
        twin = known.get(id(value["request"])) if type(value) is dict and "request" in value else None
        if twin is not None:
            records.append(twin.again(number, value["at_ms"]))
            continue
        problem = _SHAPE.problem(value)
        if problem is None and value.keys() not in _MEMBERS:
            problem = ("", "expected exactly one of response and error, and no other member")
        if problem is not None:
            findings.append(breach("R01", problem[1], Where(path, f"/{number}{problem[0]}")))
            continue
        kind = KINDS.get(kind_name(value["read"]))
        found = (role, value["service"], value["operation"])
        if kind is None or kind[:3] != found or value["read"] == "ledger_snapshot":
            sentence = f"read {value['read'][:40]!r} cannot stand here as {'/'.join(found)}"
            findings.append(breach("R02", sentence, Where(path, f"/{number}")))
            continue
        records.append(
            Record(
                path=path,
                line=number,
                read=value["read"],
                of=value["of"],
                page=value["page"],
                at_ms=value["at_ms"],
                request=value["request"],
                response=value.get("response") or {},
                error=value.get("error"),
                marker_in=value["marker_in"],
                marker_out=value["marker_out"],
            )
        )
        known[id(value["request"])] = records[-1]
    return records, findings


def whole(pages: list[Record]) -> tuple[list[Record], list[Finding]]:
    """The pages of one read in order, and why they are not the whole of it.

    Pages may stand in any order and may be repeated word for word (CASES D05); a contradiction is a finding.
    """
    by_number: dict[int, Record] = {}
    findings = []
    for record in pages:
        twin = by_number.setdefault(record.page, record)
        if twin is not record and _said(twin) != _said(record):
            findings.append(
                breach("R03", f"page {record.page} occurs twice and differs", record.where, page=record.page)
            )
    ordered = [by_number[number] for number in sorted(by_number)]
    if [record.page for record in ordered] != list(range(1, len(ordered) + 1)):
        numbers = sorted(by_number)
        findings.append(
            breach("R03", f"expected pages 1..{len(numbers)}, found {numbers[:8]}", pages[0].where)
        )
    else:
        findings.extend(_chain(ordered))
    findings.extend(
        breach("R08", f"{record.read}: {record.error['code']}", record.where, error=record.error["code"])
        for record in ordered
        if record.error
    )
    return ordered, findings


def _said(record: Record):
    return record.request, record.response, record.error, record.marker_in, record.marker_out


def _chain(ordered: list[Record]):
    """Each page must start where the one before it said, and only the last must say that it is the last."""
    expected = None
    for record in ordered:
        if record.error:
            return
        if expected is None and record is not ordered[0]:
            yield breach("R04", "the page before said that it was the last", record.where / "marker_in")
        start = record.request.get(record.kind.start) if record.kind.start else None
        following = record.response.get(record.kind.next) if record.kind.next else None
        if record.marker_in != expected or start != record.marker_in:
            yield breach(
                "R04", "the page does not start where the page before it ended", record.where / "marker_in"
            )
        # An empty marker ends a read exactly like an absent one.
        if (following or None) != record.marker_out:
            yield breach("R04", "marker_out is not the response's marker", record.where / "marker_out")
        expected = record.marker_out
    if expected is not None:
        yield breach("R04", "the last page says there is more", ordered[-1].where / "marker_out")


def grouped(records: list[Record], read: str) -> dict[str, list[Record]]:
    """Records of one read name by what they are of."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.read == read:
            groups.setdefault(record.of, []).append(record)
    return groups
