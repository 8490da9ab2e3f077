"""The stages of a study: probe -> validate -> canonical, each on the package of the one before.

What an earlier package is worth is not remembered but asked: the oracle judges it again, as a command,
each time a stage wants to stand on it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.errors import UsageError
from runner.names import GRADES
from runner.protocol import Cell, Protocol
from runner.runs.history import Past

PROBE, VALIDATE, CANONICAL = "probe", "validate", "canonical"
BEFORE = {PROBE: None, VALIDATE: PROBE, CANONICAL: VALIDATE}
STAGES = tuple(BEFORE)

Judge = Callable[[Path], dict[str, Any]]


@dataclass(frozen=True)
class Stage:
    """One stage as it would run now."""

    name: str
    cells: tuple[Cell, ...]
    # Validation may run the variants side by side; the canonical trials run in the protocol's order.
    sequential: bool


def stage(name: str, protocol: Protocol) -> Stage:
    """Return what a stage runs: nothing but the probe, or every cell of the protocol's order."""
    cells = () if name == PROBE else protocol.order
    return Stage(name, cells, sequential=name == CANONICAL)


def publishable(name: str, protocol: Protocol) -> bool:
    """Whether a stage's package may be published as the study: the canonical stage of its own protocol."""
    return name == CANONICAL and protocol.canonical


def standing_on(name: str, protocol: Protocol, target: str, runs: list[Past], judge: Judge) -> str | None:
    """Return the id of the package that the stage stands on: the newest sound one of the stage before.

    Raises UsageError saying what is missing and the command that makes it.
    """
    needed = BEFORE[name]
    if needed is None:
        return None
    candidates = [
        run
        for run in reversed(runs)
        if (run.stage, run.protocol_sha256, run.target) == (needed, protocol.sha256, target)
        and run.grade == GRADES[target]
        and run.package is not None
    ]
    faults = []
    for run in candidates:
        fault = unsound(judge(run.package), len(stage(needed, protocol).cells))
        if fault is None:
            return run.package_id
        faults.append(f"package {run.package_id[:12]} of run {run.run_id}: {fault}")
    raise UsageError(
        f"stage {name} stands on a package of stage {needed}, and there is no sound one",
        expected=f"a {needed} package of {protocol.name} (SHA-256 {protocol.sha256[:12]}) on {target}",
        found="; ".join(faults) or "none",
        next_step=f"python -m runner stage {needed} --protocol {protocol.name} --target {target}",
    )


def unsound(verdict: dict[str, Any], planned: int) -> str | None:
    """Return why a package does not carry the next stage, or None if it does."""
    trials = verdict["trials"]
    if not verdict["integrity"]["ok"]:
        return "its integrity is broken"
    if (verdict["probe"] or {}).get("validity") != "valid":
        return "its probe is not valid"
    if verdict["findings"]:
        return ", ".join(finding["code"] for finding in verdict["findings"])
    if len(trials) != planned:
        return f"{len(trials)} of {planned} trials"
    bad = [t for t in trials if t["validity"] != "valid" or t["verdict"] not in ("pass", "fail")]
    if bad:
        return "; ".join(f"{t['scenario']}/{t['variant']} is {t['validity']}, {t['verdict']}" for t in bad)
    return None
