"""Every run there ever was: read from its folder, never edited, never deleted, never left out."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.errors import LabError
from runner.names import ADDENDA, RUN
from runner.runs import state
from runner.runs.freeze import find_package
from runner.runs.state import FINAL, State

# A run from before state logs were kept: its package speaks for it.
UNLOGGED = "unlogged"
# A run whose folder cannot be read; it is listed all the same.
DAMAGED = "damaged"
TRIAL_KEYS = {"scenario", "variant", "verdict", "validity", "findings"}


@dataclass(frozen=True)
class Past:
    """One run as its folder tells it."""

    run_id: str
    state: str
    stage: str | None = None
    protocol: str | None = None
    protocol_sha256: str | None = None
    target: str | None = None
    grade: str | None = None
    started_at_ms: int = 0
    planned: int = 0
    package: Path | None = None
    result: dict[str, Any] = field(default_factory=dict)
    resumed: int = 0
    reason: str = ""

    @property
    def package_id(self) -> str | None:
        """The identity of what the run published, or None."""
        return self.package.name if self.package else None

    @property
    def excluded(self) -> str | None:
        """Why this run is no evidence of a stage, or None if it is."""
        trials = self.result.get("trials", [])
        unusable = [t for t in trials if t["validity"] != "valid" or t["verdict"] not in ("pass", "fail")]
        begun = f"{len(trials)} of {self.planned} planned trials were begun"
        probe = f"its probe is {self.result.get('probe') or 'missing'}"
        unfinished = f"unfinished since {self.state}: runner resume {self.run_id}"
        cases = (
            (self.state == DAMAGED, f"its folder is damaged: {self.reason}"),
            (self.state == State.REFUSED, f"refused before anything was opened: {self.reason}"),
            (self.state == State.ABANDONED, f"closed without a package: {self.reason}"),
            (self.state not in (*FINAL, UNLOGGED), unfinished),
            (not self.result, "no result was kept"),
            (len(trials) < self.planned, f"{begun}; {probe}"),
            (self.result.get("probe") != "valid", probe),
            (bool(unusable), "; ".join(_blame(trial) for trial in unusable)),
            (self.stage == RUN, "a run outside the stages"),
        )
        return next((reason for holds, reason in cases if holds), None)

    def as_json(self) -> dict[str, Any]:
        """Return the run for `runs --json`."""
        keys = ("scenario", "variant", "verdict", "validity")
        return {
            "run_id": self.run_id,
            "state": self.state,
            "stage": self.stage,
            "protocol": self.protocol,
            "target": self.target,
            "grade": self.grade,
            "started_at_ms": self.started_at_ms,
            "package": self.package_id,
            "verdict": self.result.get("verdict"),
            "probe": self.result.get("probe"),
            "trials": [{key: trial[key] for key in keys} for trial in self.result.get("trials", [])],
            "resumed": self.resumed,
            "excluded": self.excluded,
        }


def _blame(trial: dict[str, Any]) -> str:
    codes = ", ".join(sorted({f["code"] for f in trial["findings"] if f["severity"] != "note"}))
    return f"{trial['scenario']}/{trial['variant']} is {trial['validity']}, {trial['verdict']} ({codes})"


def history(runs_dir: Path) -> list[Past]:
    """Return every run under the folder, oldest first."""
    folders = [folder for folder in runs_dir.glob("*/") if folder.name != ADDENDA]
    found = [past(folder) for folder in folders if not folder.name.startswith(".")]
    return sorted(found, key=lambda run: (run.started_at_ms, run.run_id))


def past(folder: Path) -> Past:
    """Read one run's folder. One that cannot be read is a run all the same, and says so."""
    try:
        return _past(folder)
    except LabError as error:
        reason = f"{error.subject}: {error.found}"
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
    return Past(folder.name, DAMAGED, reason=reason)


def _past(folder: Path) -> Past:
    entries = state.read(folder)
    package = find_package(folder)
    told = entries[0] if entries else _from_package(package)
    return Past(
        run_id=folder.name,
        state=entries[-1]["state"] if entries else UNLOGGED if package else State.CREATED,
        **{key: told.get(key) for key in ("stage", "protocol", "protocol_sha256", "target", "grade")},
        started_at_ms=int(told.get("started_at_ms", 0)),
        planned=len(told.get("cells", ())),
        package=package.path if package else None,
        result=_result(folder),
        resumed=sum(entry["state"] == State.RESUMED for entry in entries),
        reason=next((entry["reason"] for entry in reversed(entries) if "reason" in entry), ""),
    )


def _from_package(package) -> dict[str, Any]:
    if package is None:
        return {}
    run = json.loads((package.path / "run.json").read_text(encoding="utf-8"))
    return {**run, "cells": run.get("planned", [])}


def _result(folder: Path) -> dict[str, Any]:
    path = folder / "result.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if not all(trial.keys() >= TRIAL_KEYS for trial in result.get("trials", [])):
        raise ValueError("a trial of result.json lacks a member")
    return result
