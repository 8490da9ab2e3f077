"""What a run costs: usage x a dated price table, against the ceiling that the protocol declares.

Money is whole picodollars until it is shown. An estimate is an upper bound and stays `unverified` until a
billing export says what AWS really charged (runner/cost/billing.py).
"""

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.cost.usage import Usage, bound, counted
from runner.errors import UsageError
from runner.packages import read
from runner.places import PROJECT_ROOT
from runner.protocol import Cell, Protocol, parse
from runner.runs.history import Past

PRICES = PROJECT_ROOT / "evidence" / "prices" / "aws-us-east-1-2026-11.toml"
PICO_PER_MICRO = 10**6
MICRO_PER_CENT = 10**4


def prices(path: Path = PRICES) -> dict[str, Any]:
    """Return the price table, with its file's name and digest."""
    raw = path.read_bytes()
    return {**tomllib.loads(raw.decode()), "file": path.name, "sha256": hashlib.sha256(raw).hexdigest()}


def priced(usage: Usage, table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one line per kind of usage, each rounded up. Usage without a price is an error, never free."""
    lines = []
    for kind, quantity in sorted(usage.items()):
        price = table["prices"][kind]
        pico = -(-quantity * price["pico_usd"] // price["per"])
        lines.append({"usage": kind, "quantity": quantity, "pico_usd": pico})
    return lines


def total_micro_usd(lines: list[dict[str, Any]]) -> int:
    """Return the sum of the lines in whole microdollars, rounded up."""
    return -(-sum(line["pico_usd"] for line in lines) // PICO_PER_MICRO)


def estimate(files: Mapping[str, bytes], protocol: Protocol, grade: str) -> dict[str, Any]:
    """Return cost.json's object: what the package's evidence counts, priced."""
    table = prices()
    lines = priced(counted(files, protocol), table)
    return {
        "state": "unverified",
        "currency": table["table"]["currency"],
        "estimate_micro_usd": total_micro_usd(lines),
        # An emulated run costs nothing; on AWS only a bill can say.
        "charged_micro_usd": None if grade == "aws" else 0,
        "ceiling_usd_cents": protocol.cost.ceiling_usd_cents,
        "lines": lines,
        "prices": {**table["table"], "file": table["file"], "sha256": table["sha256"]},
    }


def room(protocol: Protocol, cells: tuple[Cell, ...], runs: list[Past]) -> dict[str, int]:
    """Return what the study has cost so far and what a stage may add, both in microdollars.

    Both are estimates from above. Emulated runs have cost nothing.
    """
    return {
        "spent_micro_usd": sum(spent_micro_usd(run) for run in runs if run.protocol == protocol.name),
        "may_add_micro_usd": total_micro_usd(priced(bound(protocol, cells), prices())),
    }


def demand_room(protocol: Protocol, cells: tuple[Cell, ...], runs: list[Past]) -> dict[str, int]:
    """Return the stage's room. Raises UsageError when it could pass the protocol's ceiling."""
    found = room(protocol, cells, runs)
    demand_within(found, protocol)
    return found


def demand_within(found: dict[str, int], protocol: Protocol) -> None:
    """Refuse a stage's room that could pass the protocol's ceiling. Raises UsageError."""
    ceiling = protocol.cost.ceiling_usd_cents * MICRO_PER_CENT
    if sum(found.values()) > ceiling:
        spent, may_add = found["spent_micro_usd"], found["may_add_micro_usd"]
        raise UsageError(
            "the stage could pass the ceiling that the protocol declares",
            expected=f"at most {usd(ceiling)} for the whole study",
            found=f"{usd(spent)} estimated so far, and this stage may add {usd(may_add)}",
            next_step="verify what was spent with `python -m runner cost PACKAGE --billing FILE`",
        )


def spent_micro_usd(run: Past) -> int:
    """Return what a run on AWS is estimated to have cost at most; emulated ones nothing."""
    if run.grade != "aws" or run.package is None:
        return 0
    files = package_files(run.package)
    protocol = parse(files["protocol.toml"], run.protocol)
    return estimate(files, protocol, run.grade)["estimate_micro_usd"]


def package_files(package: Path) -> dict[str, bytes]:
    """Return the files of a package, folder or archive, by path.

    Raises UsageError when they are not those that were frozen: what they count would be no evidence.
    """
    return {path: data for path, (_, data) in read(package).files.items()}


def usd(micro: int) -> str:
    """Return microdollars for people: 1234567 -> `US$ 1.234567`."""
    whole, part = divmod(micro, 10**6)
    return f"US$ {whole}.{part:06d}"
