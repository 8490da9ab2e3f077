"""The command line: judge, codes (and explain, compare, results, cite). Data on stdout, notes on stderr."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from oracle import VERSION
from oracle.codes import CODES
from oracle.judge import EXIT, judge_path
from oracle.source import NotAPackage
from oracle.text import render

USAGE, HARNESS = 64, 70


class _Parser(argparse.ArgumentParser):
    """argparse ends with 2 on a mistake; here 2 means indeterminate."""

    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="oracle",
        description="Judges frozen evidence. Exit codes of judge: 0 pass, 1 fail, "
        "2 indeterminate, 64 usage, 70 harness.",
    )
    parser.add_argument("--version", action="version", version=f"oracle {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    judge = commands.add_parser("judge", help="say pass, fail or indeterminate for a package")
    judge.add_argument("package", metavar="PACKAGE", type=Path, help="a package folder, .tar or .tar.gz")
    judge.add_argument("--json", action="store_true", help="print the whole report as JSON")
    codes = commands.add_parser("codes", help="list every code with its clause and its consequence")
    codes.add_argument("--json", action="store_true", help="print the list as JSON")
    return parser


def main(argv: list[str] | None = None) -> int:
    arguments = build_parser().parse_args(argv)
    try:
        return COMMANDS[arguments.command](arguments)
    except NotAPackage as mistake:
        print(f"oracle: {mistake}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return HARNESS
    except OSError as error:
        print(
            f"oracle: cannot read {error.filename or 'the package'}: {error.strerror or error}",
            file=sys.stderr,
        )
        return HARNESS
    except Exception as error:  # noqa: BLE001 - a fault of the oracle is no verdict
        print(
            f"oracle: fault of the oracle itself ({type(error).__name__}: {error}); this is no verdict",
            file=sys.stderr,
        )
        return HARNESS


def _judge(arguments) -> int:
    report = judge_path(arguments.package)
    print(dump(report.as_json()) if arguments.json else render(report))
    return EXIT[report.verdict]


def _codes(arguments) -> int:
    if arguments.json:
        print(dump([code._asdict() for code in CODES.values()]))
    else:
        for code in CODES.values():
            print(f"{code.code}  {code.consequence:<10}  {code.clause}")
    return 0


def dump(value) -> str:
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True)


COMMANDS = {"judge": _judge, "codes": _codes}
