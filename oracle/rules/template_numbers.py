"""V04, V05: what was deployed has the protocol's numbers. Least evidence: template and protocol."""

from __future__ import annotations

from oracle.rules.base import VALIDITY, Rule
from oracle.template import HANDLERS, check_template


def check(trial):
    if trial.variant in HANDLERS:
        yield from check_template(trial.documents.template, trial.protocol, trial.variant)


RULE = Rule("template_numbers", VALIDITY, ("template", "protocol"), check)
