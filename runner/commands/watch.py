"""`python -m runner watch`: a run that goes on in another terminal, to look at and not to touch."""

import argparse
import json
import os
from pathlib import Path

from rich.console import Console
from rich.live import Live

from runner.clock import SystemClock
from runner.errors import EXIT_OK, LabError, UsageError
from runner.live import picture as live
from runner.live.picture import Picture
from runner.live.view import render

POLL_S = 0.25
# After its picture has ended, a run still prints and keeps its result.
RESULT_LIMIT_S = 30


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add `watch`."""
    parser = subparsers.add_parser("watch", help="look at a run in progress from another terminal")
    parser.add_argument("run_id", metavar="RUN", nargs="?", help="a run's id; without it, the newest run")


def main(args: argparse.Namespace) -> int:
    """Show the run until it ends, then its result. Ctrl-C ends the watching, never the run."""
    from runner.places import runs_dir

    folder = find(runs_dir(), args.run_id)
    console = Console(stderr=True)
    if _load(folder).ended:
        # Nobody asks to watch what is over: a run that was just started has no folder for its first moments.
        console.print(
            f"run {folder.name} has already ended; this is what it showed"
            + ("" if args.run_id else " (a run shows here once its cloud and stack are ready)"),
            soft_wrap=True,
            highlight=False,
        )
    try:
        pid = watch(folder, console, SystemClock())
        show_result(folder, pid, SystemClock())
    except KeyboardInterrupt:
        console.print("no longer watching; the run goes on")
    return EXIT_OK


def find(runs: Path, run_id: str | None) -> Path:
    """Return the run's folder. Raises UsageError when there is nothing to watch."""
    pictures = sorted(runs.glob(f"*/{live.NAME}"), key=lambda path: path.parent.name)
    wanted = [path.parent for path in pictures if run_id in (None, path.parent.name)]
    if wanted:
        return wanted[-1]
    raise UsageError(
        f"there is no run {run_id} to watch" if run_id else "there is no run to watch",
        expected="the id of a run whose first trial has started",
        found=", ".join(path.parent.name for path in pictures[-5:]) or "none",
        next_step="python -m runner run, in another terminal",
    )


def watch(folder: Path, console: Console, clock: SystemClock) -> int:
    """Follow the picture until the run ends, and return its process id.

    Raises LabError if that process is gone without an end.
    """
    picture = _load(folder)
    if not console.is_terminal:
        return _follow_lines(folder, console, clock)
    with Live(console=console, auto_refresh=False, transient=True) as screen:
        while not picture.ended:
            screen.update(render(picture, clock.now_ms()), refresh=True)
            clock.sleep(POLL_S)
            picture = _next(folder, picture)
    return picture.pid


def _follow_lines(folder: Path, console: Console, clock: SystemClock) -> int:
    shown, picture = 0, _load(folder)
    while True:
        for line in picture.lines[max(0, shown - picture.first_line) :]:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        shown = picture.first_line + len(picture.lines)
        if picture.ended:
            return picture.pid
        clock.sleep(POLL_S)
        picture = _next(folder, picture)


def _next(folder: Path, before: Picture) -> Picture:
    # The process is looked at first: one that ends after this look has written its end by the next.
    alive = _alive(before.pid)
    picture = _load(folder)
    if not alive and not picture.ended and picture.pid == before.pid:
        raise LabError(
            f"run {folder.name} was left by its process without an end",
            expected=f"process {picture.pid} to be alive",
            found="it is gone",
            next_step=f"python -m runner resume {folder.name}",
        )
    return picture


def _load(folder: Path) -> Picture:
    picture = live.load(folder)
    if picture is None:
        raise LabError(f"the picture of run {folder.name} cannot be read", found=str(folder / live.NAME))
    return picture


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def show_result(folder: Path, pid: int, clock: SystemClock) -> None:
    """Print the run's result table on stdout, once it is there."""
    from runner.runs import result as results

    limit = clock.monotonic() + RESULT_LIMIT_S
    while not (folder / "result.json").is_file():
        # A process found alive may have kept its result by the next look.
        limit = limit if _alive(pid) else min(limit, clock.monotonic() + POLL_S)
        if clock.monotonic() > limit:
            raise LabError(f"run {folder.name} ended without a result", next_step="look at its own terminal")
        clock.sleep(POLL_S)
    result = json.loads((folder / "result.json").read_bytes())
    results.show(Console(), result)
