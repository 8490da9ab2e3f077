"""Relations that must hold between a protocol's values, each told by name, expected and found."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runner.names import SCENARIOS, VARIANTS

if TYPE_CHECKING:
    from runner.protocol import Protocol

# ISO 4217 codes the lab knows, with their minor-unit exponents (CASES D24).
CURRENCY_EXPONENTS = {"BRL": 2, "USD": 2, "EUR": 2, "JPY": 0, "KWD": 3}

# Lambda refuses an SQS mapping on a durable function whose executions may last longer than
# this: https://docs.aws.amazon.com/lambda/latest/dg/durable-invoking-esm.html
EXECUTION_TIMEOUT_CEILING_S = 900


def relations(p: "Protocol", name: str) -> Iterator[tuple[str, bool, str, str]]:
    """Yield (what is wrong if it does not hold, holds, expected, found), one per relation."""
    yield from _money(p)
    yield from _waits(p)
    conv, dur = p.conventional, p.durable
    yield ("study.name is not the file's name", p.name == name, name, p.name)
    yield (
        "caller.total_max_attempts is not one request on the wire",
        p.caller.total_max_attempts == 1,
        "1",
        str(p.caller.total_max_attempts),
    )
    for variant, queue in (("conventional", conv), ("durable", dur)):
        yield (
            f"variants.{variant}.batch_size mixes requests in a delivery",
            queue.batch_size == 1,
            "1",
            str(queue.batch_size),
        )
        yield (
            f"variants.{variant}.max_receive_count leaves no retry",
            2 <= queue.max_receive_count <= 1000,
            "2 to 1000",
            str(queue.max_receive_count),
        )
    yield ("variants.durable.step_name is empty", bool(dur.step_name), "a name", repr(dur.step_name))
    yield ("variants.durable.step_attempts", 1 <= dur.step_attempts <= 10, "1 to 10", str(dur.step_attempts))
    yield ("variants.durable.step_jitter", dur.step_jitter == "NONE", "NONE", dur.step_jitter)
    yield (
        "variants.durable.step_semantics",
        dur.step_semantics == "AT_LEAST_ONCE_PER_RETRY",
        "AT_LEAST_ONCE_PER_RETRY",
        dur.step_semantics,
    )
    yield (
        "variants.durable.retention_days",
        1 <= dur.retention_days <= 90,
        "1 to 90",
        str(dur.retention_days),
    )
    cells = [(c.scenario, c.variant) for c in p.order]
    every = sorted((s, v) for s in SCENARIOS for v in VARIANTS)
    yield ("order is not every cell once", sorted(cells) == every, str(every), str(sorted(cells)))


def _money(p: "Protocol") -> Iterator[tuple[str, bool, str, str]]:
    r = p.refund
    yield ("refund.refund_request_id is empty", bool(r.refund_request_id), "an id", "''")
    yield ("refund.payment_id is empty", bool(r.payment_id), "an id", "''")
    yield ("refund.approved_minor is not money", r.approved_minor > 0, "1 or more", str(r.approved_minor))
    yield (
        "refund.approved_minor is over refund.captured_minor",
        r.approved_minor <= r.captured_minor,
        f"at most {r.captured_minor}",
        str(r.approved_minor),
    )
    yield (
        "refund.currency is not known",
        r.currency in CURRENCY_EXPONENTS,
        "one of " + ", ".join(CURRENCY_EXPONENTS),
        repr(r.currency),
    )
    yield (
        "cost.ceiling_usd_cents is negative",
        p.cost.ceiling_usd_cents >= 0,
        "0 or more",
        str(p.cost.ceiling_usd_cents),
    )


def _waits(p: "Protocol") -> Iterator[tuple[str, bool, str, str]]:
    conv, dur, q = p.conventional, p.durable, p.quiescence
    deadline_s = -(-p.caller.deadline_ms // 1000)
    least_execution = dur.step_attempts * deadline_s + (dur.step_attempts - 1) * dur.step_retry_delay_s
    waits = (
        # (name, value, least, most, why)
        (
            "caller.deadline_ms",
            p.caller.deadline_ms,
            1,
            p.caller.function_timeout_s * 1000 - 1,
            "below caller.function_timeout_s",
        ),
        ("caller.function_timeout_s", p.caller.function_timeout_s, 1, 900, "what Lambda allows"),
        ("provider.function_timeout_s", p.provider.function_timeout_s, 1, 900, "what Lambda allows"),
        ("release.function_timeout_s", p.release.function_timeout_s, 1, 900, "what Lambda allows"),
        ("release.max_retries", p.release.max_retries, 0, 100, "bounded retries"),
        (
            "provider.hold_budget_s",
            p.provider.hold_budget_s,
            deadline_s + 1,
            p.provider.function_timeout_s - 1,
            "above caller.deadline_ms and below provider.function_timeout_s",
        ),
        ("provider.barrier_poll_ms", p.provider.barrier_poll_ms, 10, 1000, "a poll"),
        (
            "variants.conventional.visibility_timeout_s",
            conv.visibility_timeout_s,
            p.caller.function_timeout_s,
            43200,
            "not below caller.function_timeout_s",
        ),
        (
            "variants.durable.execution_timeout_s",
            dur.execution_timeout_s,
            least_execution + 1,
            EXECUTION_TIMEOUT_CEILING_S,
            "above all attempts and delays, and what an SQS mapping allows",
        ),
        (
            "variants.durable.visibility_timeout_s",
            dur.visibility_timeout_s,
            max(dur.execution_timeout_s + 1, p.caller.function_timeout_s),
            43200,
            "above variants.durable.execution_timeout_s",
        ),
        (
            "variants.durable.step_retry_delay_s",
            dur.step_retry_delay_s,
            1,
            31_622_400,
            "whole seconds, as the service keeps them",
        ),
        ("quiescence.samples", q.samples, 2, 100, "more than one sample (CASES D12)"),
        ("quiescence.interval_s", q.interval_s, 1, 60, "a settle window"),
        (
            "quiescence.trial_limit_s",
            q.trial_limit_s,
            2 * max(conv.visibility_timeout_s, dur.visibility_timeout_s) + q.samples * q.interval_s,
            86_400,
            "above two visibility timeouts and the settle window",
        ),
    )
    for path, value, least, most, why in waits:
        yield (f"{path} is out of range", least <= value <= most, f"{least} to {most} ({why})", str(value))
