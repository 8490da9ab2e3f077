"""The command line: small, refuses bad input before anything starts, data on stdout, notes on stderr."""

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

from runner.errors import EXIT_HARNESS, EXIT_USAGE, LabError
from runner.targets.aws_errors import telling

# In the order of the help. Each is a module of runner.commands with `add_parser` and `main`.
COMMANDS = (
    "run",
    "stage",
    "resume",
    "runs",
    "preregister",
    "cost",
    "closeout",
    "local",
    "redact",
    "report",
    "watch",
    "audit",
    "cleanup",
    "doctor",
)


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
    parser = Parser(prog="python -m runner", description="Run trials, freeze them, ask the oracle.")
    parser.add_argument("-v", "--verbose", action="store_true", help="show tracebacks of harness faults")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for command in COMMANDS:
        _module(command).add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character shows its number, and no command ends for it.
            stream.reconfigure(errors="backslashreplace")
    args = build_parser().parse_args(argv)
    try:
        with telling(f"running {args.command}"):
            code = _module(args.command).main(args)
        # Here, where its failure can still be told from a fault of ours.
        sys.stdout.flush()
        return code
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        if args.verbose:
            traceback.print_exc()
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_HARNESS
    except (BrokenPipeError, SystemExit):
        # The reader of stdout has gone (Rich exits with 1 then); nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_HARNESS
    except OSError as error:
        if args.verbose:
            traceback.print_exc()
        return _tell_place(error)
    except Exception as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        print("  this is a fault of the lab, not of your input; -v shows where", file=sys.stderr)
        if args.verbose:
            traceback.print_exc()
        return EXIT_HARNESS


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"runner.commands.{command}")


def _tell_place(error: OSError) -> int:
    """A disk that is full or a place that is closed is a fault of the environment, not of the lab."""
    print(f"error: {error.filename or type(error).__name__}: {error.strerror or error}", file=sys.stderr)
    print("  next:     see that this place exists, is yours and has room; -v shows where", file=sys.stderr)
    return EXIT_HARNESS
