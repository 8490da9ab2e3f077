"""`python -m runner cleanup`: executions stopped, the stack deleted, then the audit."""

import argparse
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from runner.audit.cleanup import Cleanup
from runner.clock import SystemClock
from runner.commands.audit import add_options, audited, note
from runner.errors import LabError, UsageError
from runner.names import Output
from runner.runs.lease import demand_free
from runner.targets.accounts import Account
from runner.targets.target import outputs_of


def add_parser(subparsers: Any) -> None:
    """Add `cleanup`."""
    command = subparsers.add_parser("cleanup", help="stop executions, delete the stack, then audit")
    add_options(command)
    command.add_argument("--force", action="store_true", help="delete it under a run that goes on, or may")
    command.add_argument("--yes", action="store_true", help="delete a stack on aws without asking")


def main(args: argparse.Namespace) -> int:
    """Take the stack away, then audit; 0 when the account is clean, 2 when it is not, or nobody knows."""

    def clean_up(account: Account, described: dict[str, Any] | None, clock: SystemClock) -> dict[str, Any]:
        return {"cleanup": _clean_up(args, account, described, clock)}

    return audited(args, clean_up)


def _clean_up(
    args: argparse.Namespace, account: Account, described: dict[str, Any] | None, clock: SystemClock
) -> dict[str, Any]:
    if described is None:
        note(f"stack {account.stack} is not there; only the audit is left to do")
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
    return Cleanup(account, clock, note).run(described)


def _demand_no_run(account: Account, described: dict[str, Any], clock: SystemClock) -> None:
    """Refuse to delete a stack under a run, whose evidence is in it alone.

    Raises UsageError naming the run, and LabError when its journal table does not say.
    """
    table = outputs_of(described).get(Output.JOURNAL_TABLE)
    if table is None:
        return
    try:
        demand_free(account.client("dynamodb"), table, clock.now_ms())
    except (ClientError, BotoCoreError) as error:
        if not _is_absent(error):
            raise LabError(
                f"nobody can say if a run goes on in stack {account.stack}",
                expected="an answer of its journal table, which names the run that holds the stack",
                found=f"{type(error).__name__}: {error}",
                next_step="repeat; if you know that no run goes on, --force deletes it unasked",
            ) from error


def _is_absent(error: ClientError | BotoCoreError) -> bool:
    """A stack that is half gone has no such table, and must still be taken away."""
    code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
    return code == "ResourceNotFoundException"
