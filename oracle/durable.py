"""Durable executions as read: versions, listings per version, each execution and its history (section 8).

Tolerant where the local emulator differs and the fact is not needed (no RetryDetails on StepSucceeded, no
details on InvocationCompleted, versions called $LATEST, ARNs of another shape); strict where a fact is
needed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from oracle.finding import Finding, Where, breach
from oracle.reads import Record, grouped, whole
from oracle.strict_json import Malformed, unique

TERMINAL = {
    "SUCCEEDED": "ExecutionSucceeded",
    "FAILED": "ExecutionFailed",
    "TIMED_OUT": "ExecutionTimedOut",
    "STOPPED": "ExecutionStopped",
}
_LISTING = {"FunctionName", "Qualifier", "Marker", "MaxItems", "ReverseOrder"}


@dataclass(slots=True)
class Execution:
    arn: str
    where: Where
    statuses: set[str] = field(default_factory=set)
    owner: str | None = None  # the trial its input names; "" = provably nobody's; None = unknown
    fetched: bool = False
    events: list[dict] = field(default_factory=list)
    history_where: Where | None = None

    @property
    def terminal(self) -> str | None:
        """The terminal status, once any read has seen it: executions do not come back."""
        return next((status for status in sorted(self.statuses) if status in TERMINAL), None)


@dataclass(slots=True)
class Durable:
    executions: dict[str, Execution] = field(default_factory=dict)
    own: list[Execution] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def events(self, event_type: str):
        return [
            event for execution in self.own for event in execution.events if event["EventType"] == event_type
        ]


def decode_durable(records: list[Record], trial_id: str, function: str | None) -> Durable:
    durable = Durable()
    findings = durable.findings
    versions = _versions(grouped(records, "versions"), function, findings)
    _listings(durable, grouped(records, "executions"), versions, function)
    fetched, histories = grouped(records, "execution"), grouped(records, "history")
    for arn in sorted((fetched.keys() | histories.keys()) - durable.executions.keys()):
        findings.append(breach("H02", "an execution was read that no listing shows", None, arn=arn))
    for arn, reads in fetched.items():
        _fetched(durable, arn, reads)
    for execution in durable.executions.values():
        _judge(durable, execution, histories.get(execution.arn), trial_id)
    return durable


def _versions(groups, function, findings) -> list[str]:
    listed = []
    for reads in groups.values():
        pages, problems = whole(reads)
        findings.extend(problems)
        for page in pages:
            if function is not None and page.request.get("FunctionName") != function:
                findings.append(breach("R09", f"expected function {function}", page.where / "request"))
            entries = page.response.get("Versions")
            whole_page = _all_objects(entries)
            listed += [entry.get("Version") for entry in entries] if whole_page else [None]
    if not listed or not all(isinstance(version, str) for version in listed):
        findings.append(breach("H01", "the function's versions were not listed", None))
    return [version for version in listed if isinstance(version, str)]


def _listings(durable, groups, versions, function) -> None:
    complete = set()
    for of, reads in groups.items():
        pages, problems = whole(reads)
        for page in pages:
            if function is not None and page.request.get("FunctionName") != function:
                problems.append(breach("R09", f"expected function {function}", page.where / "request"))
            if page.request.get("Qualifier", "") != of or not set(page.request) <= _LISTING:
                problems.append(
                    breach("H02", "the listing is filtered or of another qualifier", page.where / "request")
                )
            if not page.error and not _all_objects(page.response.get("DurableExecutions")):
                problems.append(
                    breach("H02", "the listing is no list of executions", page.where / "response")
                )
            for entry in _objects(page.response.get("DurableExecutions")):
                _seen(durable, entry, page.where / "response")
        durable.findings.extend(problems)
        complete |= set() if problems else {of}
    missing = sorted({"", *versions} - complete)
    if missing:
        durable.findings.append(
            breach(
                "H02",
                "executions were not listed in full",
                None,
                missing=[of or "(unqualified)" for of in missing[:8]],
            )
        )


def _seen(durable, entry, where) -> Execution | None:
    arn = entry.get("DurableExecutionArn")
    if not isinstance(arn, str):
        durable.findings.append(breach("H02", "a listed execution has no ARN", where))
        return None
    execution = durable.executions.setdefault(arn, Execution(arn, where))
    execution.statuses.add(entry.get("Status") if isinstance(entry.get("Status"), str) else "?")
    return execution


def _fetched(durable, arn, reads) -> None:
    pages, problems = whole(reads)
    durable.findings.extend(problems)
    record = pages[0]
    if record.error:
        return
    execution = _seen(durable, record.response, record.where / "response")
    if execution is None or execution.arn != arn or record.request.get("DurableExecutionArn") != arn:
        durable.findings.append(breach("R09", "the execution read is not the one asked for", record.where))
        return
    execution.fetched = True
    execution.owner = owner_of(record.response.get("InputPayload"))


def owner_of(payload) -> str | None:
    """The trial that an execution's input names; "" for a warm-up; None when that cannot be told."""
    try:
        event = json.loads(payload, object_pairs_hook=unique)
        if event.get("ping") is True and "Records" not in event:
            return ""
        bodies = [json.loads(each["body"], object_pairs_hook=unique)["trial_id"] for each in event["Records"]]
        return bodies[0] if len(set(bodies)) == 1 and isinstance(bodies[0], str) else None
    except (Malformed, TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError):
        return None


def _judge(durable, execution, reads, trial_id) -> None:
    """Whose it is, whether it ended, and whether its history is all there.

    An execution that nobody fetched and that ended can do nothing more; one that may still run may still
    refund.
    """
    if execution.owner is not None and execution.owner != trial_id:
        return
    facts = {"arn": execution.arn, "statuses": sorted(execution.statuses)}
    if execution.terminal is None:
        durable.findings.append(
            breach("H03", "an execution that may be the trial's is not terminal", execution.where, **facts)
        )
    if execution.owner is None and not execution.fetched:
        return
    durable.own.append(execution)
    if not reads or len(execution.statuses & set(TERMINAL)) > 1:
        durable.findings.append(
            breach("H04", "the execution has no history or two endings", execution.where, **facts)
        )
        return
    _history(durable, execution, reads, trial_id)


def _history(durable, execution, reads, trial_id) -> None:
    pages, problems = whole(reads)
    by_id: dict[int, dict] = {}
    for page in pages:
        if page.request.get("DurableExecutionArn") != execution.arn:
            problems.append(breach("R09", "the history is of another execution", page.where / "request"))
        if (
            page.request.get("IncludeExecutionData", True) is not True
            or page.request.get("ReverseOrder") is True
        ):
            problems.append(
                breach("H06", "the history was read without its data or reversed", page.where / "request")
            )
        if not page.error and not _all_objects(page.response.get("Events")):
            problems.append(breach("H04", "the history is no list of events", page.where / "response"))
        for position, event in enumerate(_objects(page.response.get("Events"))):
            where = page.where / "response" / "Events" / position
            number = event.get("EventId")
            if type(number) is not int or not isinstance(event.get("EventType"), str):
                problems.append(breach("H04", "a history event has no EventId or EventType", where))
            elif by_id.setdefault(number, event) != event:
                problems.append(
                    breach("H05", f"EventId {number} occurs twice and differs", where, event_id=number)
                )
    execution.events = [by_id[number] for number in sorted(by_id)]
    execution.history_where = pages[0].where
    types = [event["EventType"] for event in execution.events]
    ends = [name for name in types if name in TERMINAL.values()]
    # That ids have no gap is not demanded: nobody has seen yet how AWS numbers them (CASES D05).
    if (
        types[:1] != ["ExecutionStarted"]
        or len(ends) != 1
        or types[-1:] != ends
        or ends[0] != TERMINAL.get(execution.terminal)
    ):
        problems.append(
            breach(
                "H04",
                "the history does not run from ExecutionStarted to its terminal event",
                pages[0].where,
                arn=execution.arn,
                first=types[:1],
                ends=ends,
            )
        )
    else:
        problems.extend(_input(execution, pages[0].where, trial_id))
    durable.findings.extend(problems)


def _input(execution, where, trial_id):
    """The input says whose the execution is; cut off, it says nothing."""
    details = execution.events[0].get("ExecutionStartedDetails")
    given = details.get("Input") if isinstance(details, dict) else None
    truncated = not isinstance(given, dict) or given.get("Truncated") is True
    if truncated or owner_of(given.get("Payload")) != trial_id or execution.owner != trial_id:
        yield breach(
            "H06", "the execution's input is truncated or does not name the trial", where, arn=execution.arn
        )


def _all_objects(value) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _objects(value) -> list[dict]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
