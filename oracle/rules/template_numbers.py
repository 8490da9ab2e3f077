"""V04, V05: what was deployed has the protocol's numbers. Least evidence: template and protocol."""

from __future__ import annotations

from oracle.rules.base import VALIDITY, Rule
from oracle.template import HANDLERS


def check(trial):
    if trial.variant in HANDLERS:
        yield from trial.documents.template_findings(trial.variant)


RULE = Rule("template_numbers", VALIDITY, frozenset({"template", "protocol"}), check)
