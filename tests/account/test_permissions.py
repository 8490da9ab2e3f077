"""Every role of the deployed stack is tried; a missing and an excess grant are noticed."""

import copy as copying

import pytest

from runner.local.deploy import deploy
from runner.names import Output
from tests.account import planted
from tests.account.permissions import on_template, problems, rehearse

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def rows(cloud, stack):
    assert cloud.iam
    return rehearse(cloud, stack)


# Each of these must be refused by a real call; the whole table says much more.
REFUSED = [
    ("conventional", "dynamodb:GetItem", Output.LEDGER_TABLE),
    ("conventional", "dynamodb:Query", Output.LEDGER_TABLE),
    ("conventional", "dynamodb:PutItem", Output.LEDGER_TABLE),
    ("durable", "dynamodb:GetItem", Output.LEDGER_TABLE),
    ("durable", "dynamodb:PutItem", Output.LEDGER_TABLE),
    ("conventional", "dynamodb:GetItem", Output.BARRIER_TABLE),
    ("durable", "dynamodb:UpdateItem", Output.BARRIER_TABLE),
    ("provider", "sqs:ReceiveMessage", Output.CONVENTIONAL_QUEUE_URL),
    ("provider", "sqs:ReceiveMessage", Output.DURABLE_QUEUE_URL),
    ("provider", "dynamodb:GetItem", Output.LEDGER_TABLE),
    ("provider", "dynamodb:UpdateItem", Output.LEDGER_TABLE),
    ("provider", "dynamodb:DeleteItem", Output.LEDGER_TABLE),
    ("release", "lambda:InvokeFunction", Output.PROVIDER_FUNCTION),
    ("release", "dynamodb:GetItem", Output.LEDGER_TABLE),
    ("provider", "lambda:InvokeFunction", Output.CONVENTIONAL_FUNCTION),
    ("conventional", "sqs:ChangeMessageVisibility", Output.CONVENTIONAL_QUEUE_URL),
    ("durable", "sqs:SendMessage", Output.DURABLE_QUEUE_URL),
    *[
        (who, "dynamodb:DeleteItem", table)
        for who in ("provider", "release", "conventional", "durable")
        for table in (Output.JOURNAL_TABLE, Output.LEDGER_TABLE)
    ],
]


def test_nothing_is_missing_and_nothing_in_excess(rows):
    assert problems(rows) == []


@pytest.mark.parametrize(("who", "action", "resource"), REFUSED)
def test_the_role_is_refused(rows, who, action, resource):
    found = [r.found for r in rows if (r.who, r.action, r.resource) == (who, action, resource)]
    assert found and set(found) == {"refused"}


def test_each_member_of_a_transaction_is_checked(rows):
    tried = {(row.who, row.action, row.resource): row.found for row in rows if row.way == "transaction"}
    assert tried["provider", "dynamodb:PutItem", Output.LEDGER_TABLE] == "allowed"
    assert tried["provider", "dynamodb:UpdateItem", Output.LEDGER_TABLE] == "refused"
    assert tried["durable", "dynamodb:PutItem", Output.LEDGER_TABLE] == "refused"
    assert tried["durable", "dynamodb:PutItem", Output.JOURNAL_TABLE] == "allowed"


def test_a_missing_and_an_excess_grant_are_noticed_and_no_refusal_is_vacuous(
    cloud, assembly, stack, tmp_path
):
    name = "SucPlanted"
    template = planted.copy(assembly, stack, name, tmp_path)
    planted.take(template, "provider", "dynamodb:UpdateItem", Output.JOURNAL_TABLE)
    planted.add(template, "conventional", "dynamodb:Query", planted.arn_of(template, Output.LEDGER_TABLE))
    planted.add(template, "release", "*", "*")
    planted.write(tmp_path, name, template)
    deploy(cloud, tmp_path, name)
    found = rehearse(cloud, name)
    cloud.client("cloudformation").delete_stack(StackName=name)
    lost = "provider dynamodb:UpdateItem on JournalTable"
    others = [row for row in found if row.who != "release"]
    assert problems(others) == [
        f"missing grant: {lost} (AccessDeniedException)",
        f"missing grant: {lost} in a transaction (AccessDeniedException)",
        "excess grant: conventional dynamodb:Query on LedgerTable (real call)",
    ]
    # A role that may do everything is refused nothing: so the refusals above are the policies' own.
    assert [row for row in found if row.who == "release" and row.found == "refused"] == []


@pytest.mark.parametrize(
    ("who", "action", "key", "sentence"),
    [
        (
            "conventional",
            "logs:CreateLogGroup",
            Output.CONVENTIONAL_LOG_GROUP,
            "excess grant: conventional logs:CreateLogGroup on ConventionalLogGroup.Arn (template)",
        ),
        (
            "durable",
            "lambda:StopDurableExecution",
            Output.DURABLE_FUNCTION,
            "excess grant: durable lambda:StopDurableExecution on DurableFunction.Arn (template)",
        ),
        ("provider", "s3:GetObject", None, "excess grant: provider s3:GetObject on * (template)"),
    ],
)
def test_an_excess_grant_that_no_call_can_show_is_read_off_the_template(
    assembly, stack, who, action, key, sentence, tmp_path
):
    template = planted.copy(assembly, stack, stack, tmp_path)
    before = copying.deepcopy(template)
    planted.add(template, who, action, planted.arn_of(template, key) if key else "*")
    assert problems(on_template(before)) == []
    assert problems(on_template(template)) == [sentence]


def test_a_missing_grant_that_no_call_can_show_is_read_off_the_template(assembly, stack, tmp_path):
    template = planted.copy(assembly, stack, stack, tmp_path)
    planted.take(template, "provider", "logs:PutLogEvents", Output.PROVIDER_LOG_GROUP)
    assert problems(on_template(template)) == [
        "missing grant: provider logs:PutLogEvents on ProviderLogGroup.Arn (template)"
    ]


def test_no_grant_hangs_on_a_condition_that_the_emulator_would_ignore(assembly, stack, tmp_path):
    template = planted.copy(assembly, stack, stack, tmp_path)
    conditions = [
        statement["Condition"]
        for resource in template["Resources"].values()
        if resource["Type"] in ("AWS::IAM::Role", "AWS::IAM::Policy")
        for policy in [*resource["Properties"].get("Policies", ()), resource["Properties"]]
        for statement in policy.get("PolicyDocument", {}).get("Statement", ())
        if "Condition" in statement
    ]
    assert conditions == []
