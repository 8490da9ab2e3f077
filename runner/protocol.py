"""The protocol of a study: its numbers, loaded from TOML and cross-checked before anything runs.

Free of aws_cdk and boto3, so the stack, the runner and the tests share one loader.
"""

import hashlib
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from runner.errors import UsageError
from runner.names import VARIANTS
from runner.protocol_relations import relations

PROTOCOLS_DIR = Path(__file__).resolve().parent.parent / "evidence" / "protocols"

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
    for relation, holds, expected, found in relations(protocol, expected_name):
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
