"""Runs of the past, made in memory and written as the runner would have left them."""

import json
from pathlib import Path

from oracle.judge import judge_path
from runner import protocol as protocols
from runner.runs.result import TRIAL_KEYS
from runner.runs.state import State
from tests.oracle.builder import Package, control, package_with, treatment
from tests.oracle.memory import judge

REHEARSAL = protocols.load("study-1-rehearsal")


def cells():
    """A story for each cell, in the protocol's order."""
    return (control, lambda p: control(p, "durable"), treatment, lambda p: treatment(p, "durable"))


def package(stage="run", stories=None, protocol=REHEARSAL, **run) -> Package:
    made = package_with(*(cells() if stories is None else stories), protocol_toml=protocol.raw.decode())
    made.docs["run.json"] |= {"stage": stage, **run}
    return made


def write_run(
    runs: Path,
    run_id: str,
    stage: str = "run",
    made: Package | None = None,
    protocol=REHEARSAL,
    started_at_ms: int = 1_790_000_000_000,
    ended: bool = True,
) -> Path:
    """Write a run's folder: state log, package and, once it has ended, result."""
    made = made or package(stage, protocol=protocol)
    folder = runs / run_id
    folder.mkdir(parents=True)
    created = {
        "n": 1,
        "at_ms": started_at_ms,
        "state": State.CREATED,
        "stage": stage,
        "protocol": protocol.name,
        "protocol_sha256": protocol.sha256,
        "target": "local",
        "grade": "emulated",
        "started_at_ms": started_at_ms,
        "cells": [{"scenario": c.scenario, "variant": c.variant} for c in protocol.order]
        if stage != "probe"
        else [],
    }
    entries = [created, {"n": 2, "at_ms": started_at_ms, "state": State.ENDED if ended else State.WAITING}]
    (folder / "state.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    made.write(folder)
    if ended:
        told = judge(made).as_json()
        result = {
            "verdict": told["verdict"],
            "probe": (told["probe"] or {}).get("validity"),
            "trials": [{key: trial.get(key) for key in TRIAL_KEYS} for trial in told["trials"]],
        }
        (folder / "result.json").write_text(json.dumps(result))
    return folder


def judge_folder(path: Path) -> dict:
    """The oracle's verdict over a package's bytes, without starting a process."""
    return judge_path(path).as_json()
