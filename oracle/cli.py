"""The command line. Data on stdout, notes on stderr; a user's mistake is one sentence, no traceback."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from pathlib import Path

from oracle import VERSION
from oracle.codes import CODES
from oracle.judge import EXIT, judge_path
from oracle.output import HARNESS, answer, complain
from oracle.source import NotAPackage, open_source
from oracle.strict_json import Malformed
from oracle.text import render, shown
from oracle.verdict import INDETERMINATE

INDETERMINATE_EXIT, USAGE = EXIT[INDETERMINATE], 64


class Refused(Exception):
    """A command that has no answer: one sentence for stderr and the exit code."""

    def __init__(self, sentence: str, code: int):
        super().__init__(sentence)
        self.code = code


class _Parser(argparse.ArgumentParser):
    """argparse ends with 2 on a mistake, here indeterminate, and says nothing of what it cannot write."""

    def __init__(self, **options):
        # Of a width of its own, argparse would load shutil and the compressors for every command.
        super().__init__(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100), **options)

    def error(self, message):
        sys.exit(complain(f"{message}\n{self.format_usage().rstrip()}", USAGE))

    def print_help(self, file=None):
        sys.exit(answer(self.format_help().rstrip(), 0))


class _Version(argparse.Action):
    def __call__(self, *_):
        sys.exit(answer(f"oracle {VERSION}", 0))


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="oracle",
        description="Judges frozen evidence. Exit codes: 0 pass, 1 fail, 2 indeterminate, "
        "64 usage, 70 harness.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which oracle this is")
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
    """Run one command and return its exit code; a usage mistake raises SystemExit with 64."""
    arguments = build_parser().parse_args(argv)
    # Judging makes many small objects and keeps few; looking for garbage that often finds none.
    gc.set_threshold(100_000)
    try:
        text, code = COMMANDS[arguments.command](arguments)
    except Refused as refusal:
        return complain(str(refusal), refusal.code)
    except NotAPackage as mistake:
        return complain(str(mistake), USAGE)
    except OSError as error:
        return complain(f"cannot read {error.filename or 'the package'}: {error.strerror or error}", HARNESS)
    except Exception as error:  # noqa: BLE001 - a fault of the oracle is no verdict
        return complain(
            f"fault of the oracle itself ({type(error).__name__}: {error}); this is no verdict", HARNESS
        )
    return answer(text, code)


# Each command returns what is to be said and the exit code; only `answer` writes to stdout. What one command
# alone needs it imports itself: a small package is judged in less time than all of it takes to load.


def _judge(arguments) -> tuple[str, int]:
    report = judge_path(arguments.package)
    return dump(report.as_json()) if arguments.json else render(report), EXIT[report.verdict]


def _explain(arguments) -> tuple[str, int]:
    from oracle.explain import explain

    stories: list[str] = []
    report = judge_path(arguments.package, keep=lambda trial, result: stories.append(explain(trial, result)))
    return "\n\n".join(stories) if not report.integrity else render(report), EXIT[report.verdict]


def _compare(arguments) -> tuple[str, int]:
    from oracle import compare

    reports = [judge_path(package) for package in arguments.packages]
    text = dump(compare.as_json(reports)) if arguments.json else compare.render(reports)
    return text, INDETERMINATE_EXIT if compare.reasons(reports) else 0


def _cite(arguments) -> tuple[str, int]:
    from oracle import results

    citer = results.Citer()
    report = judge_path(arguments.package, keep=citer.see)
    if report.integrity:
        raise Refused("the package's integrity is broken; nothing in it can be cited", INDETERMINATE_EXIT)
    return dump(citer.document(report)), 0


def _results(arguments) -> tuple[str, int]:
    from oracle import results

    try:
        document = results.load_results(arguments.results.read_bytes())
    except (Malformed, FileNotFoundError, IsADirectoryError) as error:
        raise Refused(f"{arguments.results}: expected a results.json, found {error}", USAGE) from None
    source = open_source(arguments.package)
    try:
        wrong = results.check(document, judge_path(arguments.package), source)
    finally:
        source.close()
    if arguments.json:
        text = dump({"ok": not wrong, "checked": len(document["values"]), "wrong": wrong})
    else:
        text = "\n".join(map(shown, wrong)) or f"{len(document['values'])} citations and the verdict hold"
    return text, INDETERMINATE_EXIT if wrong else 0


def _codes(arguments) -> tuple[str, int]:
    if arguments.json:
        return dump([code._asdict() for code in CODES.values()]), 0
    return "\n".join(f"{code.code}  {code.consequence:<10}  {code.clause}" for code in CODES.values()), 0


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
