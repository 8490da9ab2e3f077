"""The command line: small, refuses bad input before anything starts, data on stdout, notes on stderr."""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence

from runner import protocol as protocols
from runner.aws_errors import telling
from runner.errors import EXIT_HARNESS, EXIT_USAGE, LabError
from runner.names import SCENARIOS, TARGETS, VARIANTS


class Parser(argparse.ArgumentParser):
    """argparse with our exit code for usage errors; its own 2 means something else here."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, allow_abbrev=False, **kwargs)

    def error(self, message: str):
        """Print the usage and the refusal, and exit with 64."""
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def build_parser() -> Parser:
    """Return the parser of every command."""
    from runner.commands_audit import add_parser as add_audit
    from runner.commands_doctor import add_parser as add_doctor
    from runner.local.cli import add_parser as add_local
    from runner.redact.cli import add_parser as add_redact
    from runner.report.cli import add_parser as add_report
    from runner.watch import add_parser as add_watch

    parser = Parser(prog="python -m runner", description="Run trials, freeze them, ask the oracle.")
    parser.add_argument("-v", "--verbose", action="store_true", help="show tracebacks of harness faults")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    run = commands.add_parser("run", help="probe, run trials, freeze a package, ask the oracle")
    run.add_argument(
        "--scenario",
        choices=SCENARIOS,
        action="append",
        help="run this scenario (may be repeated); without it, every scenario of the protocol",
    )
    run.add_argument("--variant", choices=VARIANTS, help="run this variant alone; without it, both")
    run.add_argument(
        "--protocol",
        default="study-1",
        choices=protocols.available(),
        help="which protocol to run (default: study-1)",
    )
    run.add_argument(
        "--target",
        choices=TARGETS,
        help="where to run; without it aws when AWS credentials resolve, else local",
    )
    run.add_argument(
        "--sequential", action="store_true", help="one trial after the other, in the protocol's order"
    )
    run.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    add_local(commands)
    add_redact(commands)
    add_report(commands)
    add_watch(commands)
    add_audit(commands)
    add_doctor(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = build_parser().parse_args(argv)
    try:
        with telling(f"running {args.command}"):
            return _dispatch(args)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        if args.verbose:
            traceback.print_exc()
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_HARNESS
    except BrokenPipeError:
        # The reader of stdout has gone; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_HARNESS
    except Exception as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        print("  this is a fault of the lab, not of your input; -v shows where", file=sys.stderr)
        if args.verbose:
            traceback.print_exc()
        return EXIT_HARNESS


def _dispatch(args: argparse.Namespace) -> int:
    if args.command == "local":
        from runner.local.cli import main as local

        return local(args)
    if args.command == "redact":
        from runner.redact.cli import main as redact

        return redact(args)
    if args.command == "report":
        from runner.report.cli import main as report

        return report(args)
    if args.command == "watch":
        from runner.watch import main as watch

        return watch(args)
    if args.command in ("audit", "cleanup"):
        from runner.commands_audit import main as audit

        return audit(args)
    if args.command == "doctor":
        from runner.commands_doctor import main as doctor

        return doctor(args)
    from runner.commands_run import run_command

    return run_command(args)


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
