"""`python -m runner run`: from the asked target to the printed result."""

import argparse
import contextlib
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

from rich.console import Console

from runner import protocol as protocols
from runner.clock import SystemClock
from runner.live.progress import Progress
from runner.names import RUN, SCENARIOS, TARGETS, VARIANTS
from runner.places import demand_runs_dir
from runner.protocol import Cell, Protocol
from runner.runs import result as results
from runner.runs.floor import protocol_floor_s
from runner.runs.freeze import Package
from runner.runs.run import Run, Timed
from runner.targets import labs
from runner.targets.target import Lab, choose


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `run` and `stage` share."""
    parser.add_argument(
        "--protocol",
        default="study-1",
        choices=protocols.available(),
        help="which protocol to run (default: study-1)",
    )
    parser.add_argument(
        "--target",
        choices=TARGETS,
        help="where to run; without it aws when AWS credentials resolve, else local",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON on stdout")


def add_parser(subparsers) -> None:
    """Add `run`."""
    run = subparsers.add_parser("run", help="probe, run trials, freeze a package, ask the oracle")
    run.add_argument(
        "--scenario",
        choices=SCENARIOS,
        action="append",
        help="run this scenario (may be repeated); without it, every scenario of the protocol",
    )
    run.add_argument("--variant", choices=VARIANTS, help="run this variant alone; without it, both")
    run.add_argument(
        "--sequential", action="store_true", help="one trial after the other, in the protocol's order"
    )
    add_target_options(run)


def main(args: argparse.Namespace) -> int:
    """Run what was asked and return the exit code. Raises LabError for what a user can act on."""
    protocol = protocols.load(args.protocol)
    scenarios = tuple(args.scenario or SCENARIOS)
    cells = protocol.cells(scenarios, (args.variant,) if args.variant else VARIANTS)
    target, announcement = choose(args.target)
    print(announcement, file=sys.stderr)
    return run_and_show(args, protocol, target, cells, args.sequential)


def run_and_show(
    args: argparse.Namespace,
    protocol: Protocol,
    target: str,
    cells: tuple[Cell, ...],
    sequential: bool,
    stage: str = RUN,
    grounds: Callable[[Lab], dict[str, Any]] = lambda _lab: {},
) -> int:
    """Run the cells on the target, keep and print the result, return the exit code.

    `grounds(lab)` says what the stage stands on, or refuses; it is asked once the lab is open.
    """
    demand_runs_dir()
    floor_s = protocol_floor_s(protocol, cells, sequential)
    print(f"{len(cells)} trials under {protocol.name}, at least {floor_s:.0f} s", file=sys.stderr)
    stop = threading.Event()
    clock = SystemClock(stop)
    timing: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(labs.interruptible(stop))
        stack.enter_context(Timed(timing, "total", clock.monotonic))
        progress = stack.enter_context(Progress(Console(stderr=True), clock))
        lab = stack.enter_context(labs.opened(target, protocol, clock, timing, progress))
        run = Run(
            lab,
            protocol,
            cells,
            sequential,
            progress,
            clock,
            stop,
            timing_s=timing,
            stage=stage,
            grounds=grounds(lab),
        )
        package, verdict = run.execute()
    return conclude_and_show(args, run, package, verdict)


def conclude_and_show(args: argparse.Namespace, run: Run, package: Package, verdict: dict[str, Any]) -> int:
    """End the run with its result, print it, and return the exit code."""
    result = results.document(run, package, verdict)
    run.conclude(result)
    if args.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        console = Console()
        results.show(console, result)
        console.print(f"transport probe: {result['probe'] or 'none'}")
        judge = f"uv run python -m oracle judge {package.path}"
        for line in (f"package: {package.path}", f"judge it yourself: {judge}"):
            console.print(line, soft_wrap=True, highlight=False)
    return results.exit_code(run, result)
