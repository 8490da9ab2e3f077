"""`python -m runner closeout`: write the study's close-out from its runs."""

import argparse
import sys
from pathlib import Path

from runner import protocol as protocols
from runner.errors import EXIT_OK, LabError
from runner.outputs import demand_file, write_file
from runner.places import runs_dir
from runner.protocol import Protocol
from runner.runs.history import history
from runner.runs.oracle_command import judge
from runner.study import registration, timestamp
from runner.study.closeout import GENERATED, render


def add_parser(subparsers) -> None:
    """Add `closeout`."""
    parser = subparsers.add_parser("closeout", help="write the study's close-out (STUDY-1.md) from its runs")
    parser.add_argument(
        "--protocol", default="study-1", choices=protocols.available(), help="default: study-1"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it here instead of to stdout")


def main(args: argparse.Namespace) -> int:
    """Render and write. No run is changed."""
    protocol = protocols.load(args.protocol)
    if args.out is not None:
        demand_file(args.out, "a close-out", GENERATED.encode())
    text = render(protocol, history(runs_dir()), _registration(protocol), judge)
    if args.out is None:
        sys.stdout.write(text)
    else:
        write_file(args.out, text.encode("utf-8"))
        print(f"written: {args.out}", file=sys.stderr)
    return EXIT_OK


def _registration(protocol: Protocol) -> list[str]:
    """Say what is registered, whether it still holds, and who besides this machine says when."""
    path = registration.newest(protocol.name)
    if path is None:
        return ["**Open:** the protocol is not registered, so the canonical stage refuses to run."]
    changed = registration.differences(registration.read(path), protocol, None)
    try:
        at = timestamp.verify(path)
        word = (
            f"time-stamped by a third party at {at}"
            if at
            else "not time-stamped: its time is this machine's word"
        )
    except LabError as error:
        word = f"**its time-stamp does not hold** ({error.found})"
    state = "still as registered" if not changed else "**changed since:** " + ", ".join(changed)
    return [f"`{path.name}`, {word}. Protocol, oracle and format: {state}."]
