"""`python -m runner doctor [--ground]`: is the target ready, and does its ground hold."""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from runner import protocol as protocols
from runner.clock import SystemClock
from runner.doctor import checks, ground
from runner.doctor.checks import Check, Health, Patient
from runner.errors import EXIT_NOT_CLEAN, EXIT_OK, LabError, UsageError
from runner.names import ADDENDA, TARGETS
from runner.places import runs_dir
from runner.protocol import Protocol
from runner.runs import addendum
from runner.runs.history import history
from runner.targets import accounts
from runner.targets.accounts import Account
from runner.targets.assembly import synthesise
from runner.targets.target import choose


def add_parser(subparsers: Any) -> None:
    """Add `doctor`."""
    doctor = subparsers.add_parser("doctor", help="check a target before anything costs money")
    doctor.add_argument("--protocol", default="study-1", choices=protocols.available(), help="whose stack")
    doctor.add_argument("--target", choices=TARGETS, help="where; as for run")
    doctor.add_argument("--json", action="store_true", help="print JSON on stdout")
    doctor.add_argument("--ground", action="store_true", help="also try the behaviours that trials stand on")
    doctor.add_argument("--yes", action="store_true", help="let --ground create its resources on aws")


def main(args: argparse.Namespace) -> int:
    """Examine the target; 0 when all is in order, 2 when something is not, or nobody knows."""
    protocol = protocols.load(args.protocol)
    target, announcement = choose(args.target)
    _note(announcement)
    with contextlib.ExitStack() as stack:
        try:
            account, versions = stack.enter_context(_account(target, protocol, args.ground))
        except LabError as error:
            # Nothing else can be asked of an account that does not let us in.
            _print(args, [checks.refused("credentials and region", error)], None)
            return EXIT_NOT_CLEAN
        if args.ground and account.target == "aws" and not args.yes:
            raise UsageError(
                f"--ground creates resources in {account.region} of account {account.account}",
                expected=f"--yes, for {ground.CREATES}; it costs less than a US cent",
                found="no --yes",
                next_step="repeat with --yes",
            )
        assembly = synthesise(protocol.name)[0]
        found = checks.examine(Patient(account, protocol, assembly, history(runs_dir())))
        surveyed = ground.survey(account, SystemClock(), versions, _note) if args.ground else None
    if surveyed is not None:
        ground.keep(surveyed)
        package = addendum.newest_package(runs_dir(), target, protocol.name)
        folder = addendum.publish(runs_dir() / ADDENDA, "ground", package, {"ground": surveyed})
        _note(f"addendum: {folder}")
    _print(args, found, surveyed)
    healthy = all(check.health == Health.OK for check in found)
    return EXIT_OK if healthy and (surveyed is None or ground.sound(surveyed)) else EXIT_NOT_CLEAN


@contextlib.contextmanager
def _account(target: str, protocol: Protocol, deploys: bool) -> Iterator[tuple[Account, dict[str, str]]]:
    """Yield the account and its engines' versions; on the local cloud bring up what is not there."""
    if target == "aws":
        yield accounts.opened(target, protocol), {}
        return
    from runner.local.cloud import ensure
    from runner.local.deploy import deploy

    with ensure() as cloud:
        account = accounts.of_cloud(cloud, protocol)
        if deploys:
            deploy(cloud, synthesise(protocol.name)[0], account.stack)
        yield account, cloud.versions


def _print(args: argparse.Namespace, found: list[Check], surveyed: dict[str, Any] | None) -> None:
    if args.json:
        document = {"checks": [check.as_json() for check in found], "ground": surveyed}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    console = Console()
    table = _columns("health", "check", "found", "next step")
    for check in found:
        table.add_row(str(check.health), check.name, check.found, check.next_step)
    console.print(table)
    if surveyed is None:
        return
    table = _columns("result", "behaviour", "expected", "observed")
    table.title = _title(surveyed)
    for told in surveyed["behaviours"]:
        name = told["name"] + ("" if told["relied_on"] else " (no trial relies on it)")
        table.add_row(told["result"], name, told["expected"], told["observed"])
    console.print(table)


def _columns(*headings: str) -> Table:
    """Return a table that breaks words on a narrow terminal rather than cut them."""
    table = Table()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _title(surveyed: dict[str, Any]) -> str:
    counts = ", ".join(f"{number} {result}" for result, number in surveyed["counts"].items())
    return f"the ground of {surveyed['target']} ({surveyed['grade']}): {counts}"


def _note(text: str) -> None:
    print(text, file=sys.stderr)
