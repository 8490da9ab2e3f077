"""V01: the trial ran the protocol's request. Least evidence: trial.json and the protocol."""

from __future__ import annotations

from oracle.finding import breach
from oracle.package import REQUEST
from oracle.rules.base import VALIDITY, Rule


def check(trial):
    own, approved = trial.document["request"], trial.protocol["refund"]
    for name in REQUEST:
        if own[name] != approved[name]:
            yield breach(
                "V01", f"{name}: expected {approved[name]}, found {own[name]}", trial.where / "request" / name
            )
    if trial.document["quiescence"]["samples"] != trial.protocol["quiescence"]["samples"]:
        yield breach("V01", "the settle window is not the protocol's", trial.where / "quiescence" / "samples")


RULE = Rule("request_as_approved", VALIDITY, frozenset({"document", "protocol"}), check)
