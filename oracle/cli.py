"""The command line. Data on stdout, notes on stderr; a user's mistake is one sentence, no traceback."""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from pathlib import Path

from oracle import VERSION, compare, results
from oracle.codes import CODES
from oracle.explain import explain
from oracle.judge import EXIT, judge_path
from oracle.source import NotAPackage, open_source
from oracle.strict_json import Malformed
from oracle.text import render
from oracle.verdict import INDETERMINATE

INDETERMINATE_EXIT, USAGE, HARNESS = EXIT[INDETERMINATE], 64, 70


class _Parser(argparse.ArgumentParser):
    """argparse ends with 2 on a mistake; here 2 means indeterminate."""

    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="oracle",
        description="Judges frozen evidence. Exit codes: 0 pass, 1 fail, 2 indeterminate, "
        "64 usage, 70 harness.",
    )
    parser.add_argument("--version", action="version", version=f"oracle {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    judge = _command(commands, "judge", "say pass, fail or indeterminate for a package")
    judge.add_argument("package", **_PACKAGE)
    story = commands.add_parser("explain", help="tell the story of each trial, with its timeline")
    story.add_argument("package", **_PACKAGE)
    comparison = _command(
        commands, "compare", "say whether variants may be compared (exit 0 or 2), and the table"
    )
    comparison.add_argument("packages", nargs="+", **_PACKAGE)
    cite = commands.add_parser("cite", help="write results.json for a package to stdout")
    cite.add_argument("package", **_PACKAGE)
    checking = _command(commands, "results", "check every citation of a results.json (exit 0 or 2)")
    checking.add_argument("package", **_PACKAGE)
    checking.add_argument("results", metavar="RESULTS", type=Path, help="a results.json")
    _command(commands, "codes", "list every code with its clause and its consequence")
    return parser


_PACKAGE = {"metavar": "PACKAGE", "type": Path, "help": "a package folder, .tar or .tar.gz"}


def _command(commands, name: str, help_text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=help_text)
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def main(argv: list[str] | None = None) -> int:
    arguments = build_parser().parse_args(argv)
    # Judging makes many small objects and keeps few; looking for garbage that often finds none.
    gc.set_threshold(100_000)
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


def _explain(arguments) -> int:
    stories: list[str] = []
    report = judge_path(arguments.package, keep=lambda trial, result: stories.append(explain(trial, result)))
    print("\n\n".join(stories) if not report.integrity else render(report))
    return EXIT[report.verdict]


def _compare(arguments) -> int:
    reports = [judge_path(package) for package in arguments.packages]
    print(dump(compare.as_json(reports)) if arguments.json else compare.render(reports))
    return INDETERMINATE_EXIT if compare.reasons(reports) else 0


def _cite(arguments) -> int:
    citer = results.Citer()
    report = judge_path(arguments.package, keep=citer.see)
    if report.integrity:
        print("oracle: the package's integrity is broken; nothing in it can be cited", file=sys.stderr)
        return INDETERMINATE_EXIT
    print(dump(citer.document(report)))
    return 0


def _results(arguments) -> int:
    try:
        document = results.load_results(arguments.results.read_bytes())
    except (Malformed, FileNotFoundError, IsADirectoryError) as error:
        print(f"oracle: {arguments.results}: expected a results.json, found {error}", file=sys.stderr)
        return USAGE
    source = open_source(arguments.package)
    try:
        wrong = results.check(document, judge_path(arguments.package), source)
    finally:
        source.close()
    if arguments.json:
        print(dump({"ok": not wrong, "checked": len(document["values"]), "wrong": wrong}))
    else:
        print("\n".join(wrong) or f"{len(document['values'])} citations and the verdict hold")
    return INDETERMINATE_EXIT if wrong else 0


def _codes(arguments) -> int:
    if arguments.json:
        print(dump([code._asdict() for code in CODES.values()]))
    else:
        for code in CODES.values():
            print(f"{code.code}  {code.consequence:<10}  {code.clause}")
    return 0


def dump(value) -> str:
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True)


COMMANDS = {
    "judge": _judge,
    "explain": _explain,
    "compare": _compare,
    "cite": _cite,
    "results": _results,
    "codes": _codes,
}
