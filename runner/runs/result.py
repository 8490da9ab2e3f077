"""The result of a run: the JSON document for programs, and the table like the article's for people."""

from typing import Any

from rich.console import Console
from rich.table import Table

from runner.errors import EXIT_NOT_CLEAN, EXIT_OK
from runner.money import money
from runner.runs.freeze import Package
from runner.runs.run import Run

TRIAL_KEYS = (
    "trial_id",
    "scenario",
    "variant",
    "ledger_transactions",
    "refunded_minor",
    "currency",
    "verdict",
    "validity",
    "processing",
    "effect_knowledge",
    "correct_completion",
    "findings",
)


def document(run: Run, package: Package, verdict: dict[str, Any]) -> dict[str, Any]:
    """Return the object that `run --json` prints; every verdict in it is the oracle's."""
    return {
        "run_id": run.run_id,
        "target": verdict["target"],
        "grade": verdict["grade"],
        "protocol": run.protocol.name,
        "stage": run.stage,
        "package": {"path": str(package.path), "id": package.id},
        "verdict": verdict["verdict"],
        "probe": (verdict["probe"] or {}).get("validity"),
        # In the oracle's order, so that "trial 3" is the same trial here, in `judge` and in the report.
        "trials": [{key: trial.get(key) for key in TRIAL_KEYS} for trial in verdict["trials"]],
        "findings": verdict.get("findings", []),
        "timing_s": {**run.timing_s, "protocol_floor": run.floor_s()},
    }


def show(console: Console, result: dict[str, Any]) -> None:
    """Print the table, if there is a trial, and what the system believes."""
    if result["trials"]:
        console.print(table(result))
    for line in beliefs(result):
        console.print(line, highlight=False, soft_wrap=True)


def exit_code(run: Run, result: dict[str, Any]) -> int:
    """0 when probe and every planned trial ran and are valid, whatever the verdicts; else 2."""
    trials = result["trials"]
    complete = len(trials) == len(run.cells) and result["probe"] == "valid"
    clean = all(t["validity"] == "valid" and t["verdict"] in ("pass", "fail") for t in trials)
    return EXIT_OK if complete and clean else EXIT_NOT_CLEAN


def table(result: dict[str, Any]) -> Table:
    """Return the results table, as the article shows it, narrow enough for 80 columns."""
    title = f"{result['protocol']} on {result['target']} (grade: {result['grade']})"
    shown = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for heading in ("", "Scenario", "Variant", "Ledger", "Refunded", "Verdict", "Validity"):
        shown.add_column(heading, overflow="fold")
    for number, t in enumerate(result["trials"], start=1):
        shown.add_row(
            str(number),
            t["scenario"],
            t["variant"],
            "?" if t["ledger_transactions"] is None else str(t["ledger_transactions"]),
            money(t["refunded_minor"], t["currency"]),
            t["verdict"],
            t["validity"],
        )
    return shown


def beliefs(result: dict[str, Any]) -> list[str]:
    """Return, a line for each trial, what the system says of itself beside what is correct."""
    return [
        f"{number}: the system reports {t['processing']}; its knowledge of the effect is "
        f"{t['effect_knowledge']}; correct completion: "
        + ("unknown" if t["correct_completion"] is None else str(t["correct_completion"]).lower())
        for number, t in enumerate(result["trials"], start=1)
    ]
