"""What a rule is: a name, what it is for, the least evidence it needs, and a check that yields findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from oracle.finding import Finding
from oracle.trial import Trial

EFFECTS, COMPLETE, VALIDITY, NOTES = "effects", "complete", "validity", "notes"


def always(_trial: Trial) -> bool:
    return True


def not_probe(trial: Trial) -> bool:
    """For rules on effects: only a probe that run.json names is spared them."""
    return not trial.is_probe


def is_full(trial: Trial) -> bool:
    """For rules on what a probe does not have: a queue, a message, a retry, an end."""
    return not trial.claims_probe


class Rule(NamedTuple):
    """`needs` names evidence of Trial.usable; with less the rule is skipped, and that bars a pass."""

    name: str
    group: str
    needs: frozenset[str]
    check: Callable[[Trial], Iterator[Finding]]
    applies: Callable[[Trial], bool] = always
