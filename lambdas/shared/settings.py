"""The environment variables of each handler as frozen, typed values, parsed inside the handler."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


class SettingsError(Exception):
    """An environment variable is missing or malformed; the message names it."""


def _text(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value.strip():
        raise SettingsError(f"environment variable {name}: expected a text, found {value!r}")
    return value


def _count(environ: Mapping[str, str], name: str) -> int:
    value = _text(environ, name)
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        raise SettingsError(f"environment variable {name}: expected a positive whole number, found {value!r}")
    return int(value)


@dataclass(frozen=True)
class CallerSettings:
    journal_table: str
    provider_function: str
    deadline_ms: int

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ) -> Self:
        return cls(
            journal_table=_text(environ, "SUC_JOURNAL_TABLE"),
            provider_function=_text(environ, "SUC_PROVIDER_FUNCTION"),
            deadline_ms=_count(environ, "SUC_DEADLINE_MS"),
        )


@dataclass(frozen=True)
class StepSettings:
    name: str
    attempts: int
    retry_delay_s: int

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ) -> Self:
        return cls(
            name=_text(environ, "SUC_STEP_NAME"),
            attempts=_count(environ, "SUC_STEP_ATTEMPTS"),
            retry_delay_s=_count(environ, "SUC_STEP_RETRY_DELAY_S"),
        )


@dataclass(frozen=True)
class ProviderSettings:
    journal_table: str
    ledger_table: str
    barrier_table: str
    hold_budget_s: int
    barrier_poll_ms: int

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ) -> Self:
        return cls(
            journal_table=_text(environ, "SUC_JOURNAL_TABLE"),
            ledger_table=_text(environ, "SUC_LEDGER_TABLE"),
            barrier_table=_text(environ, "SUC_BARRIER_TABLE"),
            hold_budget_s=_count(environ, "SUC_HOLD_BUDGET_S"),
            barrier_poll_ms=_count(environ, "SUC_BARRIER_POLL_MS"),
        )


@dataclass(frozen=True)
class ReleaseSettings:
    journal_table: str
    barrier_table: str
    deadline_ms: int

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ) -> Self:
        return cls(
            journal_table=_text(environ, "SUC_JOURNAL_TABLE"),
            barrier_table=_text(environ, "SUC_BARRIER_TABLE"),
            deadline_ms=_count(environ, "SUC_DEADLINE_MS"),
        )
