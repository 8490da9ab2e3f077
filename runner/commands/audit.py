"""`python -m runner audit`: what is left of a stack in the account, looked at twice."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from runner import protocol as protocols
from runner.audit.finding import CLEAN
from runner.audit.passes import FORMAT, Audit, Scope, audit
from runner.clock import SystemClock
from runner.errors import EXIT_NOT_CLEAN, EXIT_OK, UsageError
from runner.names import ADDENDA, TARGETS
from runner.outputs import demand_file, write_file
from runner.places import runs_dir
from runner.records import canonical
from runner.runs import addendum
from runner.runs.freeze import template_body
from runner.targets import accounts
from runner.targets.accounts import Account
from runner.targets.assembly import synthesise
from runner.targets.aws_errors import telling
from runner.targets.target import choose, described_stack

First = Callable[[Account, dict[str, Any] | None, SystemClock], dict[str, Any]]

# Late log lines and slow listings are a matter of minutes on AWS, of moments on one machine.
DELAY_S = {"aws": 120, "local": 2}


def add_parser(subparsers: Any) -> None:
    """Add `audit`."""
    add_options(subparsers.add_parser("audit", help="list what is left of a stack in the account, twice"))


def add_options(command: argparse.ArgumentParser) -> None:
    """Add what `audit` and `cleanup` both take."""
    command.add_argument("--protocol", default="study-1", choices=protocols.available(), help="whose stack")
    command.add_argument("--target", choices=TARGETS, help="where; as for run")
    command.add_argument("--json", action="store_true", help="print the audit as JSON on stdout")
    command.add_argument(
        "--delay-s", type=int, metavar="N", help="between the two passes (120 on aws, 2 on local)"
    )
    command.add_argument("--out", type=Path, metavar="FILE", help="also write the audit to FILE")
    command.add_argument(
        "--package", type=Path, help="the package that the result is about; else the newest run's"
    )


def main(args: argparse.Namespace) -> int:
    """Audit; 0 when the account is clean, 2 when it is not, or nobody knows."""
    return audited(args, lambda _account, _described, _clock: {})


def audited(args: argparse.Namespace, first: First) -> int:
    """Look for the stack, do `first`, audit, freeze both into an addendum; return the exit code.

    `first` gets the account, the described stack (None when it is not there) and the clock, and returns
    the documents of the addendum that tell what it did.
    """
    if args.delay_s is not None and args.delay_s < 0:
        raise UsageError("--delay-s is negative", expected="0 or more seconds", found=str(args.delay_s))
    if args.out:
        demand_file(args.out, "an audit", FORMAT.encode())
    protocol = protocols.load(args.protocol)
    target, announcement = choose(args.target)
    note(announcement)
    # Before anything is touched: a wrong --package must not be found out after the deletion.
    package = (
        addendum.package_id(args.package)
        if args.package
        else addendum.newest_package(runs_dir(), target, protocol.name)
    )
    account = accounts.opened(target, protocol)
    with telling("looking for the stack"):
        described = described_stack(account.client, account.stack)
    assembly = synthesise(protocol.name)[0]
    templates = [json.loads((assembly / f"{account.stack}.template.json").read_text())]
    if described:
        with telling("reading the deployed template"):
            templates.append(template_body(account.client, account.stack))
    # Made while the stack is there: afterwards its template cannot be read any more.
    scope = Scope.of(account, templates, assembly)
    clock = SystemClock()
    documents = first(account, described, clock)
    delay_s = DELAY_S[target] if args.delay_s is None else args.delay_s
    result = audit(account, scope, delay_s=delay_s, now_ms=clock.now_ms, sleep=clock.sleep, note=note)
    documents |= {"audit": result.as_json()}
    frozen = addendum.publish(runs_dir() / ADDENDA, args.command, package, documents, result.asker.reads)
    _print(args, result, frozen, package)
    return EXIT_OK if result.clean else EXIT_NOT_CLEAN


def _print(args: argparse.Namespace, result: Audit, frozen: Path, package: str | None) -> None:
    if args.out:
        write_file(args.out, canonical(result.as_json()))
    if args.json:
        print(json.dumps({**result.as_json(), "addendum": str(frozen), "package": package}, indent=2))
        return
    console = Console()
    console.print(_table(result))
    console.print("clean" if result.clean else "NOT CLEAN", style="bold")
    console.print(f"addendum: {frozen}", soft_wrap=True, highlight=False)
    console.print(f"cites package: {package or 'none'}", soft_wrap=True, highlight=False)


def _table(result: Audit) -> Table:
    """Return one row per finding of the last pass, what is not clean first."""
    table = Table(title=f"{result.account.stack} on {result.account.target} ({result.account.grade})")
    for column in ("status", "type", "what", "why", "found by"):
        table.add_column(column, overflow="fold")
    for f in sorted(result.findings, key=lambda f: (f.status in CLEAN, f.type, f.identifier)):
        table.add_row(str(f.status), f.type, f.identifier, f.seen.reason, ", ".join(f.found_by))
    return table


def note(text: str) -> None:
    """Tell a person, on stderr."""
    print(text, file=sys.stderr)
