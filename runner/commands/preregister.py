"""`python -m runner preregister`: say what will be run and judged before there is any evidence."""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from runner import protocol as protocols
from runner.clock import SystemClock
from runner.errors import EXIT_NOT_CLEAN, EXIT_OK, UsageError
from runner.names import stack_name
from runner.protocol import Protocol
from runner.runs.freeze import assets
from runner.study import registration, timestamp
from runner.targets.assembly import synthesise


def add_parser(subparsers) -> None:
    """Add `preregister` and its `verify`."""
    parser = subparsers.add_parser(
        "preregister", help="record the digests of protocol, oracle, format and code before a study runs"
    )
    parser.add_argument(
        "--protocol", default="study-1", choices=protocols.available(), help="default: study-1"
    )
    parser.add_argument("--timestamp", metavar="URL", help="have it time-stamped by this RFC 3161 service")
    parser.add_argument("--tsa-root", type=Path, metavar="PEM", help="root certificate of that service")
    commands = parser.add_subparsers(dest="preregister_command", metavar="verify")
    check = commands.add_parser("verify", help="check a registration and its time-stamp, offline")
    check.add_argument("file", type=Path, metavar="FILE", help="the registration (.json)")
    check.add_argument(
        "--no-assets", action="store_true", help="do not synthesise to compare the code's assets"
    )
    check.add_argument("--json", action="store_true", help="print JSON on stdout")


def main(args: argparse.Namespace) -> int:
    """Register, or verify a registration."""
    return _verify(args) if args.preregister_command == "verify" else _register(args)


def _register(args: argparse.Namespace) -> int:
    if (args.timestamp is None) != (args.tsa_root is None):
        raise UsageError(
            "a time-stamp is only worth its root certificate",
            expected="--timestamp URL together with --tsa-root PEM",
            found="one of the two",
            next_step="give both, or neither",
        )
    root_pem = _read(args.tsa_root) if args.tsa_root else b""
    protocol = protocols.load(args.protocol)
    said = registration.contents(protocol, synthesised_assets(protocol), SystemClock().now_ms())
    path = registration.write(said, datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"))
    if args.timestamp:
        try:
            print(f"time-stamped: {timestamp.stamp(path, args.timestamp, root_pem)}", file=sys.stderr)
        except BaseException:
            # Ctrl-C too: a registration that was to be time-stamped is none without its stamp.
            path.unlink()
            raise
    if said["code"]["dirty"]:
        print("note: the tree differs from its commit; commit before the study runs", file=sys.stderr)
    print(path)
    return EXIT_OK


def _verify(args: argparse.Namespace) -> int:
    said = registration.read(args.file)
    protocol = protocols.load(said["protocol"]["name"])
    at = timestamp.verify(args.file)
    now = None if args.no_assets else synthesised_assets(protocol)
    changed = registration.differences(said, protocol, now)
    if args.json:
        found = {
            "file": args.file.name,
            "time_stamped": at,
            "changed": changed,
            "assets_compared": now is not None,
        }
        print(json.dumps(found, indent=2))
    else:
        print(f"time-stamp: {at or 'none: nobody outside says when this was written'}")
        print(
            "changed since: " + (", ".join(changed) or "nothing" + ("" if now else " (assets not compared)"))
        )
    return EXIT_NOT_CLEAN if changed else EXIT_OK


def synthesised_assets(protocol: Protocol) -> list[dict[str, str]]:
    """Return the digests of the code and layer that a deployment would use."""
    assembly, _ = synthesise(protocol.name)
    template = assembly / f"{stack_name(protocol.name)}.template.json"
    return assets(json.loads(template.read_text(encoding="utf-8")))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            "the root certificate cannot be read",
            expected="a PEM file",
            found=f"{path}: {error.strerror}",
            next_step="give the root of the time-stamping service with --tsa-root",
        ) from error
