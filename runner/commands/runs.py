"""`python -m runner runs`: every run there ever was, with what became of it."""

import argparse
import json
import sys

from runner.errors import EXIT_OK
from runner.places import runs_dir
from runner.runs.history import Past, history


def add_parser(subparsers) -> None:
    """Add `runs`."""
    parser = subparsers.add_parser(
        "runs", help="list every run there ever was, excluded ones with the reason"
    )
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")


def main(args: argparse.Namespace) -> int:
    """List the runs. Nothing is changed."""
    runs = history(runs_dir())
    if args.json:
        print(json.dumps([run.as_json() for run in runs], indent=2, ensure_ascii=False))
        return EXIT_OK
    for run in runs:
        print(_line(run))
        if run.excluded:
            print(f"    excluded: {run.excluded}")
    print(f"{len(runs)} runs, {sum(run.excluded is not None for run in runs)} excluded", file=sys.stderr)
    return EXIT_OK


def _line(run: Past) -> str:
    state = run.state + (f", resumed {run.resumed}x" if run.resumed else "")
    verdicts = " ".join(trial["verdict"] for trial in run.result.get("trials", [])) or "-"
    named = (run.stage or "?", run.protocol or "?", run.grade or "?")
    return "  ".join((run.run_id, *named, state, (run.package_id or "-")[:12], verdicts))
