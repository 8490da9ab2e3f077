"""Collecting evidence after a trial: every page of every read, raw, with its markers."""

import json
from typing import Any

from runner.names import DURABLE, Output
from runner.records import Reads
from runner.targets.target import Lab
from runner.trials.trial import Trial

SNAPSHOTS = 2

# The statuses that cannot change any more; one that is not listed is not terminal (CASES D09).
TERMINAL_STATUSES = {"SUCCEEDED", "FAILED", "TIMED_OUT", "STOPPED"}


def partition_query(table: str, trial_id: str) -> dict[str, Any]:
    """Return a strongly consistent Query over one trial's partition of a table."""
    return {
        "TableName": table,
        "ConsistentRead": True,
        "KeyConditionExpression": "trial_id = :trial",
        "ExpressionAttributeValues": {":trial": {"S": trial_id}},
    }


def ledger_query(lab: Lab, trial_id: str) -> dict[str, Any]:
    """Return a strongly consistent Query over one trial's partition of the ledger."""
    return partition_query(lab.ledger_table, trial_id)


def collect(lab: Lab, trial: Trial, now_ms) -> dict[str, Reads]:
    """Read everything the package needs about a trial; keys are the files' roles.

    Reads that fail are recorded as errors inside the records, never dropped.
    """
    dynamodb = lab.client("dynamodb")
    ledger, journal = Reads(now_ms), Reads(now_ms)
    for number in range(1, SNAPSHOTS + 1):
        ledger.all_pages(f"ledger_snapshot_{number}", dynamodb, "Query", ledger_query(lab, trial.trial_id))
    journal.all_pages("journal", dynamodb, "Query", partition_query(lab.journal_table, trial.trial_id))
    journal.once(
        "barrier",
        dynamodb,
        "GetItem",
        {
            "TableName": lab.barrier_table,
            "Key": {"trial_id": {"S": trial.trial_id}},
            "ConsistentRead": True,
        },
    )
    roles = {"journal": journal, "ledger": ledger, "logs": _logs(lab, trial, now_ms)}
    if trial.queues is not None:
        roles["queues"] = trial.queues
    if trial.variant == DURABLE:
        durable = Reads(now_ms)
        histories(durable, lab, durable_executions(durable, lab, trial))
        roles["durable"] = durable
    return roles


def durable_executions(reads: Reads, lab: Lab, trial: Trial) -> dict[str, dict[str, Any]]:
    """Find the trial's durable executions; return GetDurableExecution's answers by ARN.

    Lists without a qualifier and once per published version, unites by ARN and filters by the
    trial id inside the execution's own input: an alias is refused as a qualifier, and a listing
    by alias that finds nothing proves nothing (CASES D09).
    """
    client, name = lab.client("lambda"), lab.outputs[Output.DURABLE_FUNCTION]
    versions = [
        version["Version"]
        for page in reads.all_pages("versions", client, "ListVersionsByFunction", {"FunctionName": name})
        for version in page["Versions"]
    ]
    listings = [("", {"FunctionName": name})]
    listings += [(version, {"FunctionName": name, "Qualifier": version}) for version in versions]
    listed: dict[str, Any] = {}
    for of, request in listings:
        for page in reads.all_pages("executions", client, "ListDurableExecutionsByFunction", request, of=of):
            for execution in page["DurableExecutions"]:
                listed[execution["DurableExecutionArn"]] = execution
    own = {}
    for arn in sorted(listed):
        # One that was terminal before the trial began cannot be the trial's; clocks of one
        # account's control plane and ours are allowed a minute. Whatever may still move is
        # looked into, however old it is.
        before = listed[arn]["StartTimestamp"].timestamp() * 1000 < trial.started_at_ms - 60_000
        if before and listed[arn]["Status"] in TERMINAL_STATUSES:
            continue
        execution = reads.once(
            "execution", client, "GetDurableExecution", {"DurableExecutionArn": arn}, of=arn
        )
        if execution is not None and _trial_of(execution.get("InputPayload", "")) == trial.trial_id:
            own[arn] = execution
    return own


def histories(reads: Reads, lab: Lab, executions: dict[str, dict[str, Any]]) -> None:
    """Freeze every page of each execution's history, with its data (CASES D05)."""
    for arn in sorted(executions):
        reads.all_pages(
            "history",
            lab.client("lambda"),
            "GetDurableExecutionHistory",
            {"DurableExecutionArn": arn, "IncludeExecutionData": True, "MaxItems": 1000},
            of=arn,
        )


def _trial_of(input_payload: str) -> str | None:
    """Return the trial id inside a durable execution's input, or None if there is none."""
    try:
        (record,) = json.loads(input_payload)["Records"]
        return json.loads(record["body"])["trial_id"]
    except (ValueError, KeyError, TypeError):
        return None


def _logs(lab: Lab, trial: Trial, now_ms) -> Reads:
    """Log lines that name the trial. Diagnostics only: no verdict is read from a log."""
    reads = Reads(now_ms)
    for group in lab.log_groups().values():
        reads.all_pages(
            "logs",
            lab.client("logs"),
            "FilterLogEvents",
            {"logGroupName": group, "filterPattern": f'"{trial.trial_id}"'},
            of=group,
        )
    return reads
