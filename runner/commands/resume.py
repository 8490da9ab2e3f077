"""`python -m runner resume`: finish or close a run whose process died."""

import argparse
import contextlib
import sys
import threading
from pathlib import Path
from typing import Any

from rich.console import Console

from runner.clock import SystemClock
from runner.commands.run import conclude_and_show
from runner.errors import EXIT_NOT_CLEAN, LabError, UsageError
from runner.live.progress import Progress
from runner.places import runs_dir
from runner.protocol import Cell, parse
from runner.runs import resume, state
from runner.runs.freeze import find_package
from runner.runs.run import Run
from runner.runs.state import State, StateLog
from runner.targets import labs
from runner.targets.target import Lab


def add_parser(subparsers) -> None:
    """Add `resume`."""
    parser = subparsers.add_parser("resume", help="finish or close a run whose process died")
    parser.add_argument("run_id", nargs="?", metavar="RUN_ID", help="without it, the only unfinished run")
    parser.add_argument("--json", action="store_true", help="print the result as JSON on stdout")


def main(args: argparse.Namespace) -> int:
    """Take the run up and return the exit code of its result."""
    folder = _chosen(args.run_id)
    stop = threading.Event()
    clock = SystemClock(stop)
    log = StateLog(folder, clock.now_ms)
    entries = state.read(folder)
    if state.ended(entries):
        raise _nothing_to_do(folder.name, f"run {folder.name} has ended: {entries[-1]['state']}")
    if not entries:
        return _abandon(log, folder, "killed before its first state was on the disk: nothing was begun")
    log.write(State.RESUMED, after=entries[-1]["state"])
    entries = state.read(folder)
    with contextlib.ExitStack() as stack:
        stack.enter_context(labs.interruptible(stop))
        progress = stack.enter_context(Progress(Console(stderr=True), clock))
        progress.say(f"run {folder.name} died after {entries[-1]['after']}: nothing new is begun")
        run = _run(folder, entries[0], progress, clock, stop, log)
        resume.restore(run, entries)
        package = find_package(folder)
        if package is None and run.lab is None:
            return _abandon(log, folder, "the stack it ran on is gone, and with it what could be collected")
        lease = run.lease() if run.lab is not None else None
        if lease:
            lease.take()
        try:
            if package is None:
                resume.settle(run, entries)
                package, verdict = run.finish()
            else:
                verdict = run.judge(package)
        finally:
            if lease:
                lease.release()
    return conclude_and_show(args, run, package, verdict)


def _run(
    folder: Path,
    created: dict[str, Any],
    progress: Progress,
    clock: SystemClock,
    stop: threading.Event,
    log: StateLog,
) -> Run:
    # The protocol as it was then, whatever the file says now.
    protocol = parse((folder / "protocol.toml").read_bytes(), created["protocol"])
    return Run(
        _same_lab(labs.standing(created["target"], protocol), created["stack_id"]),
        protocol,
        tuple(Cell(**cell) for cell in created["cells"]),
        created["sequential"],
        progress,
        clock,
        stop,
        run_id=folder.name,
        runs_dir=folder.parent,
        stage=created["stage"],
        grounds=created["grounds"],
        log=log,
    )


def _same_lab(lab: Lab | None, stack_id: str) -> Lab | None:
    """Only the very stack the run was on holds its evidence; a later one of that name does not."""
    return lab if lab is not None and lab.stack_id == stack_id else None


def _abandon(log: StateLog, folder: Path, reason: str) -> int:
    log.write(State.ABANDONED, reason=reason)
    log.close()
    print(f"run {folder.name} is closed without a package: {reason}", file=sys.stderr)
    return EXIT_NOT_CLEAN


def _chosen(run_id: str | None) -> Path:
    if run_id:
        folder = runs_dir() / run_id
        if not (folder / "state.jsonl").is_file():
            raise _nothing_to_do(run_id, f"no run {run_id} with a state log")
        return folder
    unfinished = [log.parent for log in sorted(runs_dir().glob("*/state.jsonl")) if _unfinished(log.parent)]
    if len(unfinished) != 1:
        raise UsageError(
            "which run should be resumed?" if unfinished else "there is nothing to resume",
            expected="the id of a run" if unfinished else "a run that has not ended",
            found=", ".join(folder.name for folder in unfinished) or "none",
            next_step="name one of them" if unfinished else "see `python -m runner runs`",
        )
    return unfinished[0]


def _unfinished(folder: Path) -> bool:
    try:
        return not state.ended(state.read(folder))
    except LabError:
        return False  # `runs` lists it as damaged, and nobody can say where to take it up


def _nothing_to_do(run_id: str, found: str) -> UsageError:
    return UsageError(
        f"run {run_id} cannot be resumed",
        expected="a run that was begun and has not ended",
        found=found,
        next_step="see `python -m runner runs`",
    )
