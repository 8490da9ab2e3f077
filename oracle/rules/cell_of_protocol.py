"""V02: scenario and variant are a cell of the protocol. Least evidence: the protocol."""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import VALIDITY, Rule, is_full
from oracle.trial import CONTROL, TREATMENT


def check(trial):
    cell = {"scenario": trial.scenario, "variant": trial.variant}
    if cell not in trial.protocol["order"] or trial.scenario not in (CONTROL, TREATMENT):
        yield breach("V02", f"{trial.scenario}/{trial.variant} is no cell of the protocol", trial.where)


RULE = Rule("cell_of_protocol", VALIDITY, frozenset({"protocol"}), check, is_full)
