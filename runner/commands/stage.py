"""`python -m runner stage probe|validate|canonical`: the steps of a study, each on the one before."""

import argparse
import sys
from typing import Any

from runner import protocol as protocols
from runner.commands.run import add_target_options, run_and_show
from runner.cost import estimate as cost
from runner.errors import UsageError
from runner.names import GRADES
from runner.places import runs_dir
from runner.runs.history import history
from runner.runs.oracle_command import judge
from runner.study import registration
from runner.study.stages import CANONICAL, STAGES, publishable, stage, standing_on
from runner.targets.target import Lab, choose


def add_parser(subparsers) -> None:
    """Add `stage`."""
    parser = subparsers.add_parser("stage", help="run a stage of the study on the package of the one before")
    parser.add_argument(
        "stage", choices=STAGES, help="probe: the chain alone; validate: every cell; canonical"
    )
    add_target_options(parser)


def main(args: argparse.Namespace) -> int:
    """Check what the stage stands on, run it, print its result."""
    protocol = protocols.load(args.protocol)
    chosen = stage(args.stage, protocol)
    target, announcement = choose(args.target)
    print(announcement, file=sys.stderr)
    runs = history(runs_dir())
    grounds: dict[str, Any] = {
        "previous": standing_on(chosen.name, protocol, target, runs, judge),
        "publishable": publishable(chosen.name, protocol),
    }
    if chosen.name == CANONICAL:
        grounds["registration"] = registration.demand(protocol)
        if not protocol.canonical:
            print(f"{protocol.name} is a rehearsal: its package cannot be published", file=sys.stderr)
    grounds["cost"] = cost.demand_room(protocol, chosen.cells, runs)

    def on(lab: Lab) -> dict[str, Any]:
        if lab.grade != GRADES[target]:
            raise UsageError(
                "the endpoint is not the target's own, so its packages are of another grade",
                expected=f"grade {GRADES[target]} on target {target}",
                found=lab.grade,
                next_step="unset the endpoint, or use --target local",
            )
        return grounds

    return run_and_show(args, protocol, target, chosen.cells, chosen.sequential, chosen.name, on)
