"""The question of the study and this package's answer, each in one or two sentences."""

from collections.abc import Iterable
from typing import Any

from runner.money import unbroken

SUCCEEDED = "SUCCEEDED"


def question(protocol: dict[str, Any]) -> str:
    """The question, with the numbers of the protocol that ran."""
    refund, deadline_ms = protocol.get("refund", {}), protocol.get("caller", {}).get("deadline_ms")
    amount = unbroken(refund.get("approved_minor"), refund.get("currency"))
    seconds = f"{deadline_ms / 1000:g} s" if isinstance(deadline_ms, int) else "its deadline"
    return (
        f"A refund of {amount} is approved. The provider commits it and the answer is lost; the caller "
        f"gives up after {seconds}, and the architecture retries. Is one approved refund still exactly one "
        "monetary effect, and does the system notice if it is not?"
    )


def answer(verdict: dict[str, Any], approved: str) -> tuple[str, str]:
    """Return the answer's first word and its sentence; both follow the oracle's verdicts."""
    trials = verdict["trials"]
    if not verdict["integrity"]["ok"]:
        return (
            "Not judged.",
            "These are not the whole, unchanged bytes of a package in a format that the oracle knows, "
            "so nothing here is a fact.",
        )
    if not trials:
        return "No answer.", "No trial was run in this package."
    by_verdict = {
        name: [t for t in trials if t["verdict"] == name] for name in ("fail", "pass", "indeterminate")
    }
    parts = []
    if by_verdict["fail"]:
        parts.append(_failed(by_verdict["fail"], approved))
    if by_verdict["pass"]:
        parts.append(_passed(by_verdict["pass"]))
    if by_verdict["indeterminate"]:
        parts.append(f"{_cells(by_verdict['indeterminate'])} left evidence that allows no verdict.")
    if by_verdict["fail"]:
        return "No.", " ".join(parts)
    return ("Yes, here." if verdict["verdict"] == "pass" else "It cannot be said."), " ".join(parts)


def _failed(trials: list[dict[str, Any]], approved: str) -> str:
    states = {t["processing"] for t in trials}
    belief = "success" if states == {SUCCEEDED} else _words(sorted(states))
    refunded = f"{_cells(trials)} refunded {_amounts(trials)} for an approved {approved}"
    return f"{refunded}, and the system reports {belief}."


def _passed(trials: list[dict[str, Any]]) -> str:
    return f"{_cells(trials)} refunded {_amounts(trials)} once."


def _amounts(trials: list[dict[str, Any]]) -> str:
    return _words(sorted({unbroken(t["refunded_minor"], t["currency"]) for t in trials}))


def _cells(trials: list[dict[str, Any]]) -> str:
    """Name trials by scenario and variant: `Under CONTROL, conventional and durable each`."""
    scenarios: dict[str, list[str]] = {}
    for trial in trials:
        variants = scenarios.setdefault(str(trial["scenario"]), [])
        if str(trial["variant"]) not in variants:
            variants.append(str(trial["variant"]))
    parts = [f"under {scenario}, {_words(variants)}" for scenario, variants in scenarios.items()]
    each = " each" if sum(len(variants) for variants in scenarios.values()) > 1 else ""
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + each


def _words(parts: Iterable[str]) -> str:
    *head, last = parts
    return f"{', '.join(head)} and {last}" if head else last
