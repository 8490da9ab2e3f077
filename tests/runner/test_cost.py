"""Cost: counted usage x dated prices in whole picodollars, against the ceiling, verified only by a bill."""

import json
from dataclasses import replace

import pytest

from runner import protocol as protocols
from runner.cli import main
from runner.cost import estimate as cost
from runner.cost.billing import billed
from runner.cost.usage import bound, counted
from runner.errors import UsageError
from runner.protocol import Cost
from runner.runs.history import history
from tests.runner.pasts import REHEARSAL, package, write_run

STUDY = protocols.load("study-1")
FILES = package().render()


def test_every_price_is_a_whole_number_with_a_source():
    table = cost.prices()
    assert table["table"]["as_of"] == "2026-11-29"
    for name, price in table["prices"].items():
        assert type(price["pico_usd"]) is int and type(price["per"]) is int and price["per"] > 0, name
        assert price["source"].startswith("https://aws.amazon.com/"), name


def test_every_kind_of_usage_has_a_price():
    kinds = counted(FILES, REHEARSAL).keys() | bound(STUDY, STUDY.order).keys()
    assert kinds <= cost.prices()["prices"].keys()


def test_usage_without_a_price_is_an_error_and_never_free():
    with pytest.raises(KeyError):
        cost.priced({"teleportations": 1}, cost.prices())


def test_lines_are_rounded_up_and_add_up():
    table = {"prices": {"a": {"pico_usd": 10, "per": 3}, "b": {"pico_usd": 1_000_000, "per": 1}}}
    lines = cost.priced({"a": 1, "b": 2}, table)
    assert [line["pico_usd"] for line in lines] == [4, 2_000_000]
    assert cost.total_micro_usd(lines) == 3


def test_usage_is_counted_from_the_evidence():
    usage = counted(FILES, REHEARSAL)
    lines = [
        json.loads(x)
        for name, data in FILES.items()
        if name.endswith("journal.jsonl")
        for x in data.splitlines()
    ]
    events = sum("type" in item for line in lines for item in line["response"].get("Items", []))
    assert usage["stream_reads"] == events
    assert usage["dynamodb_write_units"] == 8 * events
    assert usage["durable_operations"] > 0 and usage["lambda_mb_ms"] > 0


def test_what_a_run_may_use_is_more_than_what_it_used():
    may, did = bound(REHEARSAL, REHEARSAL.order), counted(FILES, REHEARSAL)
    assert {kind for kind in did if did[kind] > may[kind]} <= {"lambda_mb_ms"}, "the builder's memory differs"


def test_the_study_fits_its_ceiling():
    room = cost.demand_room(STUDY, STUDY.order, [])
    assert 0 < room["may_add_micro_usd"] < STUDY.cost.ceiling_usd_cents * 10_000
    assert room["spent_micro_usd"] == 0


def test_a_stage_that_could_pass_the_ceiling_is_refused():
    tight = replace(STUDY, cost=Cost(0))
    with pytest.raises(UsageError, match="ceiling") as refusal:
        cost.demand_room(tight, tight.order, [])
    assert refusal.value.exit_code == 64


def test_what_aws_runs_may_have_cost_counts_and_emulated_ones_are_free(tmp_path):
    write_run(tmp_path, "r1", "validate")
    (emulated,) = history(tmp_path)
    real = replace(emulated, grade="aws")
    assert cost.spent_micro_usd(emulated) == 0
    assert cost.spent_micro_usd(real) == cost.estimate(FILES, REHEARSAL, "aws")["estimate_micro_usd"] > 0
    may_add = cost.demand_room(REHEARSAL, REHEARSAL.order, [])["may_add_micro_usd"]
    exact = replace(REHEARSAL, cost=Cost(-(-may_add // 10_000)))
    cost.demand_room(exact, exact.order, [emulated])
    with pytest.raises(UsageError):
        cost.demand_room(exact, exact.order, [real] * 200)


@pytest.mark.parametrize(("grade", "charged"), [("emulated", 0), ("aws", None)])
def test_an_estimate_is_unverified_and_an_emulated_run_is_charged_nothing(grade, charged):
    found = cost.estimate(FILES, REHEARSAL, grade)
    assert (found["state"], found["charged_micro_usd"]) == ("unverified", charged)
    assert found["prices"]["file"] == "aws-us-east-1-2026-11.toml"


# -- bills ----------------------------------------------------------------------------------------

LEGACY = (
    "lineItem/UsageStartDate,lineItem/UnblendedCost,lineItem/CurrencyCode,"
    "resourceTags/user:study,resourceTags/user:project"
)
EXPORT = (
    "line_item_usage_start_date,line_item_unblended_cost,line_item_currency_code,"
    "resource_tags_user_study,resource_tags_user_project"
)
OURS = "USD,study-1,serverless-under-constraints"
DAY = 1_790_000_000_000  # 2026-09-21


def bill(tmp_path, *rows, head=LEGACY):
    path = tmp_path / "bill.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


@pytest.mark.parametrize("head", [LEGACY, EXPORT])
def test_only_rows_with_our_tags_on_the_runs_days_are_added(tmp_path, head):
    path = bill(
        tmp_path,
        f"2026-09-21T00:00:00Z,0.0000001,{OURS}",
        f"2026-09-21T01:00:00Z,0.10,{OURS}",
        f"2026-09-22T00:00:00Z,9,{OURS}",
        "2026-09-21T00:00:00Z,9,USD,study-10,serverless-under-constraints",
        "2026-09-21T00:00:00Z,9,USD,,",
        head=head,
    )
    found = billed(path, "study-1", DAY, DAY)
    assert (found.rows, found.micro_usd) == (2, 100_001)


@pytest.mark.parametrize(
    ("row", "head"),
    [
        ("2026-09-21,abc," + OURS, LEGACY),
        ("2026-09-21,1,EUR,study-1,serverless-under-constraints", LEGACY),
        ("yesterday,1," + OURS, LEGACY),
        ("1", "cost"),
    ],
)
def test_a_file_that_is_no_such_export_is_refused(tmp_path, row, head):
    with pytest.raises(UsageError, match="billing export"):
        billed(bill(tmp_path, row, head=head), "study-1", DAY, DAY)


def run_cost(tmp_path, capsys, *arguments, grade="emulated"):
    made = package("validate", grade=grade)
    code = main(["cost", str(made.write(tmp_path)), "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def rows_of(amount):
    return f"2026-09-21,{amount},USD,study-1-rehearsal,serverless-under-constraints"


def test_without_a_bill_the_command_says_unverified(tmp_path, capsys):
    code, found = run_cost(tmp_path, capsys, grade="aws")
    assert (code, found["state"], found["charged_micro_usd"]) == (0, "unverified", None)


@pytest.mark.parametrize(("amount", "code", "state"), [("0.000001", 0, "verified"), ("99", 2, "exceeded")])
def test_a_bill_verifies_or_contradicts_the_estimate(tmp_path, capsys, amount, code, state):
    path = bill(tmp_path, rows_of(amount))
    ended, found = run_cost(tmp_path, capsys, "--billing", str(path), grade="aws")
    assert (ended, found["state"], found["billing_rows"]) == (code, state, 1)


def test_a_bill_without_our_rows_verifies_nothing(tmp_path, capsys):
    path = bill(tmp_path, "2026-09-21,5,USD,,")
    code, found = run_cost(tmp_path, capsys, "--billing", str(path), grade="aws")
    assert (code, found["state"], found["billing_rows"]) == (0, "unverified", 0)


def test_no_bill_verifies_an_emulated_run(tmp_path, capsys):
    path = bill(tmp_path, rows_of("0.1"))
    _, found = run_cost(tmp_path, capsys, "--billing", str(path))
    assert (found["state"], found["charged_micro_usd"]) == ("unverified", 0)


def test_the_table_for_people_says_what_it_would_cost(tmp_path, capsys):
    assert main(["cost", str(package().write(tmp_path))]) == 0
    told = capsys.readouterr().out
    assert "on AWS it would cost at most US$ 0." in told and "charged: US$ 0.000000 (unverified)" in told


def test_a_folder_that_is_no_package_is_refused(tmp_path, capsys):
    assert main(["cost", str(tmp_path)]) == 64
