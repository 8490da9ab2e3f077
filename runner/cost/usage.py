"""What a run used of AWS: counted from its evidence afterwards, bounded from its protocol before.

Where the evidence holds no count, both use a bound from above, so that an estimate can only be too high:
every invocation is charged to its function's timeout, every write as a transaction of four items.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from runner.names import COMMIT_THEN_TIMEOUT, CONVENTIONAL, VARIANTS
from runner.protocol import Cell, Protocol

# Bounds that neither evidence nor protocol states.
WRITE_UNITS_PER_EVENT = 8  # counter, event and two companions, two units each
READ_UNITS_PER_EVENT = 2  # the counter, and once more after a conflict
READ_UNITS_PER_LOOK = 2  # a query of one trial's partition, up to 8 KB
EVENTS_PER_TRIAL, EVENTS_PER_ATTEMPT = 6, 10
MEMORY_MB = 1024
LOG_BYTES_PER_INVOCATION = 16 * 1024
DURABLE_BYTES_PER_OPERATION = 16 * 1024
POLLERS_PER_MAPPING, POLL_S = 5, 20  # Lambda's own long polls of an SQS queue, whether it is empty or not
WARM_UPS = 8
COLLECT_READS = 20

HANDLERS = {
    "lambdas.caller.conventional.handler": "conventional",
    "lambdas.caller.durable.handler": "durable",
    "lambdas.provider.handler.handler": "provider",
    "lambdas.release.handler.handler": "release",
}

Usage = Counter[str]


def counted(files: Mapping[str, bytes], protocol: Protocol) -> Usage:
    """Count a package's usage. `files` are its files by path."""
    run, template = json.loads(files["run.json"]), json.loads(files["template.json"])
    usage: Usage = Counter()
    _add_invocations(usage, template, dict.fromkeys(HANDLERS.values(), WARM_UPS // len(HANDLERS)))
    for path, data in files.items():
        folder, _, name = path.rpartition("/")
        records = [json.loads(line) for line in data.splitlines()] if name.endswith(".jsonl") else []
        if name == "journal.jsonl":
            variant = json.loads(files[f"{folder}/trial.json"])["variant"]
            _add_journal(usage, records, template, protocol, variant)
        elif name == "durable.jsonl":
            _add_durable(usage, records, protocol)
        elif name == "queues.jsonl":
            usage["sqs_fifo_requests"] += len(records)
            usage["dynamodb_read_units"] += READ_UNITS_PER_LOOK * len(records)
        elif name == "logs.jsonl":
            usage["log_bytes"] += len(data)
    duration_s = max(0, run["ended_at_ms"] - run["started_at_ms"]) // 1000 + 1
    _add_polls(usage, duration_s)
    # The lines that name no trial (start, end, report) are in no evidence.
    usage["log_bytes"] += usage["lambda_requests"] * LOG_BYTES_PER_INVOCATION
    return +usage


def bound(protocol: Protocol, cells: tuple[Cell, ...]) -> Usage:
    """Return the most a run of these cells can use if every trial goes to its limits."""
    usage: Usage = Counter()
    _add_calls(usage, protocol, CONVENTIONAL, 1, timeouts=1)
    for cell in cells:
        limits = protocol.conventional if cell.variant == CONVENTIONAL else protocol.durable
        steps = 1 if cell.variant == CONVENTIONAL else protocol.durable.step_attempts
        attempts = limits.max_receive_count * steps
        _add_calls(usage, protocol, cell.variant, attempts, attempts * (cell.scenario == COMMIT_THEN_TIMEOUT))
        looks = protocol.quiescence.trial_limit_s // protocol.quiescence.interval_s
        usage["sqs_fifo_requests"] += 2 * looks + 3 * attempts
        usage["dynamodb_read_units"] += READ_UNITS_PER_LOOK * looks + COLLECT_READS
        if cell.variant != CONVENTIONAL:
            _add_operations(usage, protocol, limits.max_receive_count * (2 + 2 * steps))
    usage["lambda_requests"] += WARM_UPS
    usage["lambda_mb_ms"] += WARM_UPS * MEMORY_MB * protocol.provider.function_timeout_s * 1000
    usage["log_bytes"] += usage["lambda_requests"] * LOG_BYTES_PER_INVOCATION
    _add_polls(usage, protocol.quiescence.trial_limit_s * (len(cells) + 1))
    return +usage


def _add_calls(usage: Usage, protocol: Protocol, variant: str, attempts: int, timeouts: int) -> None:
    """Add attempts of one trial: caller and provider each time, and the release for each timeout."""
    releases = timeouts * (1 + protocol.release.max_retries)
    # A durable caller is invoked once more to replay after each retry delay.
    callers = attempts if variant == CONVENTIONAL else 2 * attempts
    usage["lambda_requests"] += callers + attempts + releases
    usage["lambda_mb_ms"] += (MEMORY_MB * 1000) * (
        callers * protocol.caller.function_timeout_s
        + attempts * protocol.provider.function_timeout_s
        + releases * protocol.release.function_timeout_s
    )
    events = EVENTS_PER_TRIAL + EVENTS_PER_ATTEMPT * attempts
    usage["dynamodb_write_units"] += WRITE_UNITS_PER_EVENT * events
    usage["dynamodb_read_units"] += READ_UNITS_PER_EVENT * events + _held_polls(protocol) * timeouts
    usage["stream_reads"] += events


def _add_journal(
    usage: Usage, records: list[dict[str, Any]], template: dict[str, Any], protocol: Protocol, variant: str
) -> None:
    items = [i for r in records if r["read"] == "journal" for i in r.get("response", {}).get("Items", [])]
    types = Counter(item["type"]["S"] for item in items if "type" in item)
    events = sum(types.values())
    usage["dynamodb_write_units"] += WRITE_UNITS_PER_EVENT * events
    usage["dynamodb_read_units"] += READ_UNITS_PER_EVENT * events + COLLECT_READS
    usage["dynamodb_read_units"] += _held_polls(protocol) * types["caller_timeout_recorded"]
    usage["stream_reads"] += events
    # A delivery costs a receive and, if it succeeds, a delete.
    usage["sqs_fifo_requests"] += types["message_send_started"] + 2 * types["delivery_received"]
    replays = types["caller_timeout_recorded"] if variant != CONVENTIONAL else 0
    invocations = {
        variant: types["delivery_received"] + replays,
        "provider": types["dispatch_started"],
        "release": types["release_signalled"] + types["release_refused"],
    }
    _add_invocations(usage, template, invocations)


def _add_durable(usage: Usage, records: list[dict[str, Any]], protocol: Protocol) -> None:
    for record in records:
        if record["read"] == "history":
            _add_operations(usage, protocol, len(record.get("response", {}).get("Events", [])))


def _add_operations(usage: Usage, protocol: Protocol, operations: int) -> None:
    written = operations * DURABLE_BYTES_PER_OPERATION
    usage["durable_operations"] += operations
    usage["durable_bytes_written"] += written
    usage["durable_byte_days_retained"] += written * protocol.durable.retention_days


def _add_invocations(usage: Usage, template: dict[str, Any], invocations: Mapping[str, int]) -> None:
    """Charge each invocation to its function's whole timeout, with the deployed memory."""
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        times = invocations.get(HANDLERS.get(properties.get("Handler"), ""), 0)
        if resource["Type"] == "AWS::Lambda::Function" and times:
            # Without a value of its own a function has Lambda's defaults.
            memory_mb, timeout_s = properties.get("MemorySize", 128), int(properties.get("Timeout", 3))
            usage["lambda_requests"] += times
            usage["lambda_mb_ms"] += times * memory_mb * timeout_s * 1000


def _add_polls(usage: Usage, duration_s: int) -> None:
    usage["sqs_fifo_requests"] += len(VARIANTS) * POLLERS_PER_MAPPING * (duration_s // POLL_S + 1)


def _held_polls(protocol: Protocol) -> int:
    """How often a provider looks at the barrier while it holds one answer."""
    return protocol.provider.hold_budget_s * 1000 // protocol.provider.barrier_poll_ms
