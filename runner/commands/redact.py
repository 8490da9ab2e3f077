"""`python -m runner redact PACKAGE --out DIR`."""

import argparse
import json
import sys
from pathlib import Path

from runner.errors import EXIT_OK, UsageError
from runner.redact.addenda import is_addendum, redact_addendum
from runner.redact.known import Machine
from runner.redact.redaction import redact


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Add the command to the runner's parser."""
    parser = commands.add_parser(
        "redact", help="make a public copy of a package without account, keys, names and local paths"
    )
    parser.add_argument(
        "source", type=Path, metavar="PACKAGE", help="a package or an addendum: folder, .tar or .tar.gz"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="new folder for the archive and its manifest"
    )
    parser.add_argument(
        "--package", type=Path, metavar="PACKAGE", help="for an addendum: the original package that it cites"
    )
    parser.add_argument("--json", action="store_true", help="print what was done as JSON on stdout")


def main(args: argparse.Namespace) -> int:
    """Redact and say what to check. Raises LabError for every refusal."""
    from runner.runs.oracle_command import judge

    if is_addendum(args.source):
        done = redact_addendum(args.source, args.out, Machine.here(), args.package)
    elif args.package:
        raise UsageError(
            "--package says which package an addendum cites",
            expected="an addendum beside it",
            found=f"{args.source}, which is none",
            next_step="leave --package out",
        )
    else:
        done = redact(args.source, args.out, Machine.here(), judge)
    if args.json:
        print(json.dumps(done.as_json(), indent=2, ensure_ascii=False))
        return EXIT_OK
    print(f"public copy: {done.out / done.archive}")
    print(f"{'package' if done.verdict else 'addendum'}: {done.id} (was {done.original_id})")
    counts = ", ".join(f"{rule} {count}" for rule, count in done.replaced.items())
    print(f"replaced: {counts or 'nothing, no known value was in it'}")
    if done.verdict:
        print(f"verdict: {done.verdict}, before and after")
    print("check it as a reader would: see evidence/REDACTION.md, section 6", file=sys.stderr)
    return EXIT_OK
