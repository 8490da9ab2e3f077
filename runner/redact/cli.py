"""`python -m runner redact PACKAGE --out DIR`."""

import argparse
import json
import sys
from pathlib import Path

from runner.errors import EXIT_OK
from runner.redact.known import Machine
from runner.redact.redaction import redact


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Add the command to the runner's parser."""
    parser = commands.add_parser(
        "redact", help="make a public copy of a package without account, keys, names and local paths"
    )
    parser.add_argument("package", type=Path, metavar="PACKAGE", help="a package folder, .tar or .tar.gz")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="new folder for the archive and its manifest"
    )
    parser.add_argument("--json", action="store_true", help="print what was done as JSON on stdout")


def main(args: argparse.Namespace) -> int:
    """Redact and say what to check. Raises LabError for every refusal."""
    from runner.oracle_command import judge

    done = redact(args.package, args.out, Machine.here(), judge)
    if args.json:
        print(json.dumps(done.as_json(), indent=2, ensure_ascii=False))
        return EXIT_OK
    print(f"public copy: {done.out / done.archive}")
    print(f"package: {done.id} (was {done.original_id})")
    counts = ", ".join(f"{rule} {count}" for rule, count in done.replaced.items())
    print(f"replaced: {counts or 'nothing, no known value was in it'}")
    print(f"verdict: {done.verdict}, before and after")
    print("check it as a reader would: see evidence/REDACTION.md, section 6", file=sys.stderr)
    return EXIT_OK
