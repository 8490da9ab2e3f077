"""`python -m runner cost PACKAGE`: what a package's run cost, estimated or held against a bill."""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from runner.cost.billing import billed
from runner.cost.estimate import MICRO_PER_CENT, PICO_PER_MICRO, estimate, package_files, usd
from runner.errors import EXIT_NOT_CLEAN, EXIT_OK, UsageError
from runner.protocol import parse


def add_parser(subparsers) -> None:
    """Add `cost`."""
    parser = subparsers.add_parser(
        "cost", help="what a run cost: estimated, or verified against a billing export"
    )
    parser.add_argument("package", type=Path, metavar="PACKAGE", help="a package folder, .tar or .tar.gz")
    parser.add_argument(
        "--billing", type=Path, metavar="CSV", help="billing export with our cost-allocation tags"
    )
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")


def main(args: argparse.Namespace) -> int:
    """Count, price and, with a bill, compare. The package is only read."""
    run, found = _estimate(args.package)
    if args.billing:
        _verify(found, args.billing, run)
    print(json.dumps(found, indent=2)) if args.json else _show(found, run["grade"])
    return EXIT_NOT_CLEAN if found["state"] == "exceeded" else EXIT_OK


def _estimate(package: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return run.json and the estimate. Raises UsageError for a package that holds no countable run."""
    files = package_files(package)
    try:
        run = json.loads(files["run.json"])
        return run, estimate(files, parse(files["protocol.toml"], run["protocol"]), run["grade"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise UsageError(
            f"what {package} used cannot be counted",
            expected="run.json, protocol.toml, template.json and trials as the runner freezes them",
            found=f"{type(error).__name__}: {error}",
            next_step=f"python -m oracle judge {package}",
        ) from error


def _verify(found: dict[str, Any], billing: Path, run: dict[str, Any]) -> None:
    bill = billed(billing, run["protocol"], run["started_at_ms"], run["ended_at_ms"])
    found["billing_rows"] = bill.rows
    if run["grade"] != "aws" or not bill.rows:
        return  # no row is no proof of no cost: bills come a day late, tags must be activated
    found["charged_micro_usd"] = bill.micro_usd
    found["state"] = "verified" if bill.micro_usd <= found["estimate_micro_usd"] else "exceeded"


def _show(found: dict[str, Any], grade: str) -> None:
    table = Table(title=f"prices of {found['prices']['as_of']}, {found['prices']['region']}")
    table.add_column("Usage", overflow="fold")
    for heading in ("Quantity", "US$"):
        table.add_column(heading, justify="right", overflow="fold")
    for line in found["lines"]:
        table.add_row(line["usage"], str(line["quantity"]), usd(-(-line["pico_usd"] // PICO_PER_MICRO))[4:])
    console = Console()
    console.print(table)
    would = "on AWS it would cost" if grade != "aws" else "estimated"
    ceiling = usd(found["ceiling_usd_cents"] * MICRO_PER_CENT)
    console.print(f"{would} at most {usd(found['estimate_micro_usd'])}; ceiling {ceiling}")
    charged = found["charged_micro_usd"]
    console.print("charged: " + ("not known" if charged is None else usd(charged)) + f" ({found['state']})")
