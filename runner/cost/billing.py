"""What AWS charged: a billing export, filtered by the stack's cost-allocation tags and the run's days.

Reads Cost and Usage Reports and Data Exports alike (`lineItem/UnblendedCost`, `line_item_unblended_cost`).
A bill knows days and tags, not runs: other runs of the study on the same days are in the same sum.
"""

import csv
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

from runner.errors import UsageError
from runner.names import PROJECT

DAY, COST, CURRENCY = "line_item_usage_start_date", "line_item_unblended_cost", "line_item_currency_code"
STUDY_TAG, PROJECT_TAG = "resource_tags_user_study", "resource_tags_user_project"
COLUMNS = (DAY, COST, CURRENCY, STUDY_TAG, PROJECT_TAG)


@dataclass(frozen=True)
class Billed:
    """The rows of a bill that carry the study's tags on the run's days, added up."""

    rows: int
    micro_usd: int


def billed(path: Path, study: str, started_at_ms: int, ended_at_ms: int) -> Billed:
    """Add up a billing export. Raises UsageError for a file without the columns or with a bad row."""
    first, last = (datetime.fromtimestamp(ms // 1000, UTC).date() for ms in (started_at_ms, ended_at_ms))
    total, rows = Decimal(0), 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = {_plain(name): name for name in reader.fieldnames or ()}
            missing = [column for column in COLUMNS if column not in names]
            if missing:
                raise _unusable(path, f"no column {', '.join(missing)}")
            for row in reader:
                values = {column: row[names[column]] or "" for column in COLUMNS}
                if (values[STUDY_TAG], values[PROJECT_TAG]) != (study, PROJECT):
                    continue
                if not first <= date.fromisoformat(values[DAY][:10]) <= last:
                    continue
                if values[CURRENCY] != "USD":
                    raise _unusable(path, f"a row in {values[CURRENCY] or 'no currency'}")
                total, rows = total + Decimal(values[COST]), rows + 1
    except (OSError, UnicodeDecodeError, ValueError, InvalidOperation) as error:
        raise _unusable(path, str(error)) from error
    return Billed(rows, int((total * 10**6).to_integral_value(rounding="ROUND_CEILING")))


def _plain(name: str) -> str:
    """`lineItem/UsageStartDate` and `line_item_usage_start_date` are one column."""
    return re.sub(r"[/: ]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)).lower()


def _unusable(path: Path, found: str) -> UsageError:
    return UsageError(
        f"{path.name} cannot be used as a billing export",
        expected="a CSV in US dollars with " + ", ".join(COLUMNS),
        found=found,
        next_step="export it with the cost-allocation tags `study` and `project` activated",
    )
