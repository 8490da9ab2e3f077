"""The protocol of a study: its numbers, loaded from TOML and cross-checked before anything runs.

Free of aws_cdk and boto3, so the stack, the runner and the tests share one loader.
"""

import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from runner.errors import UsageError
from runner.names import SCENARIOS, VARIANTS

PROTOCOLS_DIR = Path(__file__).resolve().parent.parent / "evidence" / "protocols"

# ISO 4217 codes the lab knows, with their minor-unit exponents (CASES D24).
CURRENCY_EXPONENTS = {"BRL": 2, "USD": 2, "EUR": 2, "JPY": 0, "KWD": 3}

# Lambda refuses an SQS mapping on a durable function above this (DURABLE.md, fact 2).
EXECUTION_TIMEOUT_CEILING_S = 900

T = TypeVar("T")


class ProtocolError(UsageError):
    """A protocol file that cannot be used; the message names the value, expected and found."""


@dataclass(frozen=True)
class Study:
    """What the protocol is called, and whether its packages may be published as the study."""

    name: str
    title: str
    canonical: bool


@dataclass(frozen=True)
class Refund:
    """The approved refund. Amounts are integer minor units of `currency`."""

    refund_request_id: str
    payment_id: str
    captured_minor: int
    approved_minor: int
    currency: str


@dataclass(frozen=True)
class CallerLimits:
    """Both callers: the application deadline and the number of requests on the wire."""

    deadline_ms: int
    total_max_attempts: int
    function_timeout_s: int


@dataclass(frozen=True)
class ProviderLimits:
    """The provider: its function timeout and how long it holds behind the barrier."""

    function_timeout_s: int
    hold_budget_s: int
    barrier_poll_ms: int


@dataclass(frozen=True)
class ReleaseLimits:
    """The release controller: its function timeout and the stream mapping's bounded retries."""

    function_timeout_s: int
    max_retries: int


@dataclass(frozen=True)
class Conventional:
    """Lambda + SQS FIFO: SQS owns the retry."""

    batch_size: int
    visibility_timeout_s: int
    max_receive_count: int


@dataclass(frozen=True)
class Durable:
    """Lambda Durable Functions: the step's retry strategy owns the retry."""

    batch_size: int
    visibility_timeout_s: int
    max_receive_count: int
    execution_timeout_s: int
    retention_days: int
    step_name: str
    step_attempts: int
    step_retry_delay_s: int
    step_jitter: str
    step_semantics: str


@dataclass(frozen=True)
class Quiescence:
    """When a trial is over: N zero samples, this far apart, within the trial's limit."""

    samples: int
    interval_s: int
    trial_limit_s: int


@dataclass(frozen=True)
class Cost:
    """The declared ceiling, in US cents."""

    ceiling_usd_cents: int


@dataclass(frozen=True)
class Cell:
    """One scenario x one variant."""

    scenario: str
    variant: str


@dataclass(frozen=True)
class Protocol:
    """A checked protocol, with the bytes it was read from (`raw`) and their SHA-256."""

    study: Study
    refund: Refund
    caller: CallerLimits
    provider: ProviderLimits
    release: ReleaseLimits
    conventional: Conventional
    durable: Durable
    quiescence: Quiescence
    cost: Cost
    order: tuple[Cell, ...]
    raw: bytes

    @property
    def name(self) -> str:
        """The protocol's name, equal to its file's stem."""
        return self.study.name

    @property
    def title(self) -> str:
        """One line that says what the study asks."""
        return self.study.title

    @property
    def canonical(self) -> bool:
        """Whether packages of this protocol may be published as the study."""
        return self.study.canonical

    @property
    def sha256(self) -> str:
        """SHA-256 of the TOML bytes, lowercase hex."""
        return hashlib.sha256(self.raw).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return the TOML as a plain object, table by table."""
        return tomllib.loads(self.raw.decode())

    def cells(self, scenarios: tuple[str, ...], variants: tuple[str, ...]) -> tuple[Cell, ...]:
        """Return the cells to run, in the protocol's order."""
        return tuple(c for c in self.order if c.scenario in scenarios and c.variant in variants)


def available() -> tuple[str, ...]:
    """Return the names of the protocols in the repository, sorted."""
    return tuple(sorted(p.stem for p in PROTOCOLS_DIR.glob("*.toml")))


def load(name: str) -> Protocol:
    """Load and check the protocol called `name`.

    Raises ProtocolError (exit code 64) naming the value, what was expected and what was found.
    """
    if name not in available():
        raise ProtocolError(
            f"protocol {name!r} is not known",
            expected="one of " + ", ".join(available()),
            found=name or "an empty name",
            next_step="choose one with --protocol, or -c protocol=NAME for cdk",
        )
    return parse((PROTOCOLS_DIR / f"{name}.toml").read_bytes(), expected_name=name)


def parse(raw: bytes, expected_name: str) -> Protocol:
    """Parse and check the TOML bytes of the protocol that should be called `expected_name`.

    Raises ProtocolError for bad TOML, an unknown or missing key, a wrong type (floats and
    booleans are not integers) or a broken relation between values.
    """
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(
            f"protocol {expected_name}: not valid TOML",
            expected="UTF-8 TOML",
            found=str(error),
            next_step="correct the file",
        ) from error
    variants = data.get("variants")
    top = {"study", "refund", "caller", "provider", "release", "variants", "quiescence", "cost", "order"}
    _same_keys(expected_name, "the top level", top, data)
    if not isinstance(variants, dict):
        raise _wrong_type(expected_name, "variants", "a table", variants)
    _same_keys(expected_name, "variants", set(VARIANTS), variants)
    protocol = Protocol(
        study=_table(Study, expected_name, "study", data["study"]),
        refund=_table(Refund, expected_name, "refund", data["refund"]),
        caller=_table(CallerLimits, expected_name, "caller", data["caller"]),
        provider=_table(ProviderLimits, expected_name, "provider", data["provider"]),
        release=_table(ReleaseLimits, expected_name, "release", data["release"]),
        conventional=_table(Conventional, expected_name, "variants.conventional", variants["conventional"]),
        durable=_table(Durable, expected_name, "variants.durable", variants["durable"]),
        quiescence=_table(Quiescence, expected_name, "quiescence", data["quiescence"]),
        cost=_table(Cost, expected_name, "cost", data["cost"]),
        order=_order(expected_name, data["order"]),
        raw=raw,
    )
    for relation, holds, expected, found in _relations(protocol, expected_name):
        if not holds:
            raise ProtocolError(
                f"protocol {expected_name}: {relation}",
                expected=expected,
                found=found,
                next_step="correct the value in the protocol file",
            )
    return protocol


def _wrong_type(name: str, path: str, expected: str, found: object) -> ProtocolError:
    return ProtocolError(
        f"protocol {name}: {path} has the wrong type",
        expected=expected,
        found=f"{found!r} ({type(found).__name__})",
        next_step="correct the value in the protocol file",
    )


def _same_keys(name: str, path: str, expected: set[str], found: dict[str, Any]) -> None:
    unknown, missing = sorted(found.keys() - expected), sorted(expected - found.keys())
    if unknown or missing:
        raise ProtocolError(
            f"protocol {name}: {path} has "
            + " and ".join(
                f"{word} key {', '.join(keys)}"
                for word, keys in (("unknown", unknown), ("missing", missing))
                if keys
            ),
            expected="exactly " + ", ".join(sorted(expected)),
            found=", ".join(sorted(found)) or "nothing",
            next_step="correct the key in the protocol file",
        )


def _table(cls: type[T], name: str, path: str, data: object) -> T:
    if not isinstance(data, dict):
        raise _wrong_type(name, path, "a table", data)
    _same_keys(name, path, {f.name for f in fields(cls)}, data)
    words = {int: "a whole number", str: "a string", bool: "true or false"}
    for field in fields(cls):
        # `type is`, not isinstance: True is an int to Python, and 3.0 must not pass for 3.
        if type(data[field.name]) is not field.type:
            raise _wrong_type(name, f"{path}.{field.name}", words[field.type], data[field.name])
    return cls(**data)


def _order(name: str, data: object) -> tuple[Cell, ...]:
    if not isinstance(data, list):
        raise _wrong_type(name, "order", "a list of scenario/variant tables", data)
    return tuple(_table(Cell, name, f"order[{i}]", entry) for i, entry in enumerate(data))


def _relations(p: Protocol, name: str) -> Iterator[tuple[str, bool, str, str]]:
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


def _money(p: Protocol) -> Iterator[tuple[str, bool, str, str]]:
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


def _waits(p: Protocol) -> Iterator[tuple[str, bool, str, str]]:
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
