"""The report as text: one table like the article's, then the findings that explain it."""

from __future__ import annotations

from oracle.judge import Report
from oracle.verdict import ERROR, SKIPPED, TrialResult

HEAD = (
    "Trial",
    "Scenario",
    "Variant",
    "Ledger transactions",
    "Refunded",
    "Verdict",
    "Validity",
    "Processing",
    "Knowledge",
    "Correct completion",
)
MINOR_DIGITS = {"BRL": 2, "USD": 2, "EUR": 2, "JPY": 0, "KWD": 3}
MAX_FINDINGS = 20


def shown(text) -> str:
    """Text of the package on one line of ours: it can neither end the line nor command the terminal."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def money(minor: int | None, currency: str | None) -> str:
    """An amount for people; an unknown currency is shown in its minor units, never guessed."""
    if minor is None or currency is None:
        return "-" if minor is None else str(minor)
    digits = MINOR_DIGITS.get(currency)
    if digits is None:
        return f"{shown(currency)} {minor} minor units"
    if digits == 0:
        return f"{currency} {minor}"
    return f"{currency} {minor // 10**digits}.{minor % 10**digits:0{digits}d}"


def table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def trial_row(number: int, trial: TrialResult) -> tuple[str, ...]:
    count = "-" if trial.ledger_transactions is None else str(trial.ledger_transactions)
    correct = {True: "yes", False: "no", None: "-"}[trial.correct_completion]
    return (
        str(number),
        shown(trial.scenario),
        shown(trial.variant),
        count,
        money(trial.refunded_minor, trial.currency),
        trial.verdict,
        trial.validity,
        trial.processing,
        trial.effect_knowledge,
        correct,
    )


def render(report: Report) -> str:
    run = report.documents.run or {}
    protocol, target, grade = (shown(run.get(name, "-")) for name in ("protocol", "target", "grade"))
    lines = [
        f"package   {report.identity or '-'}",
        f"protocol  {protocol}, target {target}, grade {grade}",
    ]
    if report.integrity:
        lines.append("integrity broken: nothing in this package is judged")
    if report.probe:
        lines.append(f"probe     {report.probe.validity}")
    if report.trials:
        lines += ["", table([HEAD, *(trial_row(n, trial) for n, trial in enumerate(report.trials, 1))])]
    lines += ["", *_findings("package", report.integrity + report.findings)]
    for number, trial in enumerate(report.trials, 1):
        lines += _findings(f"trial {number}", trial.findings) + _unrun(f"trial {number}", trial)
    if report.probe:
        lines += _findings("probe", report.probe.findings) + _unrun("probe", report.probe)
    return "\n".join([*lines, f"verdict   {report.verdict}"])


def _findings(who: str, findings) -> list[str]:
    lines = [
        shown(f"{who}: {found.code} {found.severity}: {found.message}{_witness(found.witness)}")
        for found in findings
    ]
    more = len(lines) - MAX_FINDINGS
    return lines[:MAX_FINDINGS] + (
        [f"{who}: and {more} more findings (--json lists them)"] if more > 0 else []
    )


def _witness(witness: dict) -> str:
    place = witness.get("path", "") + witness.get("pointer", "")
    facts = [f"{name} {value}" for name, value in witness.items() if name not in ("path", "pointer")]
    return f" [{'; '.join(filter(None, [place, *facts]))}]" if place or facts else ""


def _unrun(who: str, trial: TrialResult) -> list[str]:
    unrun = [
        f"{name} ({status})" for name, status in trial.rules.items() if status.startswith((SKIPPED, ERROR))
    ]
    return [f"{who}: rules not judged: {', '.join(unrun)}"] if unrun else []
