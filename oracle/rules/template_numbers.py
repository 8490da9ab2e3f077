"""V04, V05: what was deployed has the protocol's numbers. Least evidence: template and protocol."""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import VALIDITY, Rule


def check(trial):
    if trial.variant not in ("conventional", "durable"):
        # Nothing looked up would be nothing wrong: a variant that we cannot look up is not proven.
        yield breach("V05", f"no resources are known for variant {trial.variant}", trial.where / "variant")
    else:
        yield from trial.documents.template_findings(trial.variant)


RULE = Rule("template_numbers", VALIDITY, frozenset({"template", "protocol"}), check)
