"""`python -m runner audit` and `cleanup`: what is left of a stack, and taking it away first."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.table import Table

from runner import accounts, addendum
from runner import protocol as protocols
from runner.accounts import Account
from runner.assembly import synthesise
from runner.audit.finding import CLEAN
from runner.audit.passes import FORMAT, Audit, Scope, audit
from runner.aws_errors import telling
from runner.cleanup import Cleanup
from runner.clock import SystemClock
from runner.errors import EXIT_NOT_CLEAN, EXIT_OK, UsageError
from runner.freeze import template_body
from runner.lease import demand_free
from runner.names import ADDENDA, TARGETS, Output
from runner.places import demand_file, write_file
from runner.records import canonical
from runner.run import runs_dir
from runner.target import choose, described_stack

# Late log lines and slow listings are a matter of minutes on AWS, of moments on one machine.
DELAY_S = {"aws": 120, "local": 2}


def add_parser(subparsers: Any) -> None:
    """Add `audit` and `cleanup`."""
    look = subparsers.add_parser("audit", help="list what is left of a stack in the account, twice")
    away = subparsers.add_parser("cleanup", help="stop executions, delete the stack, then audit")
    for command in (look, away):
        command.add_argument(
            "--protocol", default="study-1", choices=protocols.available(), help="whose stack"
        )
        command.add_argument("--target", choices=TARGETS, help="where; as for run")
        command.add_argument("--json", action="store_true", help="print the audit as JSON on stdout")
        command.add_argument(
            "--delay-s", type=int, metavar="N", help="between the two passes (120 on aws, 2 on local)"
        )
        command.add_argument("--out", type=Path, metavar="FILE", help="also write the audit to FILE")
        command.add_argument(
            "--package", type=Path, help="the package that the result is about; else the newest run's"
        )
    away.add_argument("--force", action="store_true", help="delete it under a run that goes on")
    away.add_argument("--yes", action="store_true", help="delete a stack on aws without asking")


def main(args: argparse.Namespace) -> int:
    """Run one of the two commands; 0 when the account is clean, 2 when it is not, or nobody knows."""
    if args.delay_s is not None and args.delay_s < 0:
        raise UsageError("--delay-s is negative", expected="0 or more seconds", found=str(args.delay_s))
    if args.out:
        demand_file(args.out, "an audit", FORMAT.encode())
    protocol = protocols.load(args.protocol)
    target, announcement = choose(args.target)
    _note(announcement)
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
    scope = Scope.of(account, templates, assembly)
    clock = SystemClock()
    documents: dict[str, Any] = {}
    if args.command == "cleanup":
        documents["cleanup"] = _clean_up(args, account, described, clock)
    delay_s = DELAY_S[target] if args.delay_s is None else args.delay_s
    result = audit(account, scope, delay_s=delay_s, now_ms=clock.now_ms, sleep=clock.sleep, note=_note)
    documents["audit"] = result.as_json()
    frozen = addendum.publish(runs_dir() / ADDENDA, args.command, package, documents, result.asker.reads)
    _print(args, result, frozen, package)
    return EXIT_OK if result.clean else EXIT_NOT_CLEAN


def _clean_up(
    args: argparse.Namespace, account: Account, described: dict[str, Any] | None, clock: SystemClock
) -> dict[str, Any]:
    if described is None:
        _note(f"stack {account.stack} is not there; only the audit is left to do")
        return {"stack": account.stack, "stack_id": None, "stack_status": "absent"}
    if account.target == "aws" and not args.yes:
        raise UsageError(
            f"cleanup would delete stack {account.stack} in {account.region} of account {account.account}",
            expected="--yes, because its tables, queues and functions go for good",
            found="no --yes",
            next_step="freeze what you need (every run already is), then repeat with --yes",
        )
    if not args.force:
        _demand_no_run(account, described, clock)
    return Cleanup(account, clock, _note).run(described)


def _demand_no_run(account: Account, described: dict[str, Any], clock: SystemClock) -> None:
    """Refuse to delete a stack under a run, whose evidence is in it alone. Raises UsageError naming it."""
    for output in described.get("Outputs", []):
        if output["OutputKey"] == Output.JOURNAL_TABLE:
            try:
                demand_free(account.client("dynamodb"), output["OutputValue"], clock.now_ms())
            except (ClientError, BotoCoreError) as error:
                # A stack that is half gone has no such table, and must still be taken away.
                _note(f"nobody can say if a run goes on in it: {type(error).__name__}")


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


def _note(text: str) -> None:
    print(text, file=sys.stderr)
