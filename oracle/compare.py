"""Whether variants may be compared, and the table of the comparison.

Eligible only if inputs, treatment and protocol are equal, the versions on the wire are equal (CASES D13),
every package is sound and every trial valid. A difference between variants is then the variants' own.
"""

from __future__ import annotations

from collections import Counter

from oracle.judge import Report
from oracle.text import HEAD, shown, table, trial_row
from oracle.verdict import VALID


def reasons(reports: list[Report]) -> list[str]:
    """Why the comparison is not eligible; empty when it is."""
    found = []
    for report in reports:
        name = report.identity[:12] or report.path
        if report.integrity:
            found.append(f"{name}: integrity is broken")
        found += [f"{name}: {finding.code} {finding.message}" for finding in report.findings]
        found += [f"{name}: trial {t.trial_id} is {t.validity}" for t in report.trials if t.validity != VALID]
    given = Counter(trial.trial_id for report in reports for trial in report.trials)
    found += [f"trial {name} was given {times} times" for name, times in given.items() if times > 1]
    for what, fact in FACTS.items():
        values = {repr(fact(report)) for report in reports}
        if len(values) != 1 or values == {"None"}:
            found.append(
                f"{what} is not one and the same: {', '.join(sorted(value[:80] for value in values))}"
            )
    return found + _cells(reports)


def _cells(reports: list[Report]) -> list[str]:
    """Each scenario must have been run with every variant, equally often."""
    counts: dict[str, dict[str, int]] = {}
    for report in reports:
        for trial in report.trials:
            row = counts.setdefault(str(trial.scenario), {})
            row[str(trial.variant)] = row.get(str(trial.variant), 0) + 1
    variants = {variant for row in counts.values() for variant in row}
    found = [] if len(variants) > 1 else ["there are not two variants to compare"]
    for scenario, row in sorted(counts.items()):
        if set(row) != variants or len(set(row.values())) != 1:
            found.append(f"{scenario} was not run equally often with each variant: {row}")
    return found


def _botocore(report: Report) -> str | None:
    if report.documents.environment is None:
        return None
    functions = report.documents.environment["functions"]
    versions = {name: f.get("botocore") for name, f in sorted(functions.items()) if isinstance(f, dict)}
    return repr(versions) if versions else None


FACTS = {
    "the protocol": lambda report: report.documents.run and report.documents.run["protocol_sha256"],
    "the request": lambda report: report.documents.protocol and report.documents.protocol["refund"],
    "target and grade": lambda report: (
        report.documents.run and (report.documents.run["target"], report.documents.run["grade"])
    ),
    "the functions' botocore": _botocore,
}


def as_json(reports: list[Report]) -> dict:
    why = reasons(reports)
    trials = [
        {"package": report.identity, **trial.as_json()} for report in reports for trial in report.trials
    ]
    return {"format": "suc-comparison", "version": 1, "eligible": not why, "reasons": why, "trials": trials}


def render(reports: list[Report]) -> str:
    why = reasons(reports)
    trials = sorted(
        (t for report in reports for t in report.trials), key=lambda t: (str(t.scenario), str(t.variant))
    )
    lines = [
        "comparison eligible" if not why else "comparison not eligible:",
        *(shown(f"  {reason}") for reason in why),
    ]
    if trials:
        lines += ["", table([HEAD, *(trial_row(n, trial) for n, trial in enumerate(trials, 1))])]
    return "\n".join(lines)
