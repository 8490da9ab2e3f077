"""The doctor's checks against queued answers: in order, a problem with its next step, or unknown."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from runner import cli
from runner.commands import doctor as commands_doctor
from runner.cost import estimate as cost
from runner.doctor import checks
from runner.doctor.checks import Check, Patient
from runner.names import Output
from runner.protocol import Cost, load
from runner.runs.history import history
from runner.study.stages import STAGES, stage
from runner.targets import target
from runner.targets.accounts import Account
from tests.account.stubs import IDENTITY, Stubs
from tests.runner.pasts import REHEARSAL, write_run

STUDY = load("study-1")
STACK = "SucStudy1"
TEMPLATE = {"Resources": {"Table": {"Type": "AWS::DynamoDB::Table"}}}
OUTPUTS = {
    Output.CONVENTIONAL_QUEUE_URL: "https://sqs.us-east-1.amazonaws.com/123456789012/a.fifo",
    Output.DURABLE_QUEUE_URL: "https://sqs.us-east-1.amazonaws.com/123456789012/b.fifo",
}


@pytest.fixture
def patient(tmp_path):
    stubs = Stubs()
    (tmp_path / f"{STACK}.template.json").write_text(json.dumps(TEMPLATE))
    account = Account("aws", "aws", "us-east-1", "123456789012", STACK, "study-1", stubs.client)
    found = Patient(account, load("study-1"), tmp_path)
    return stubs, found


def described(status: str = "CREATE_COMPLETE") -> dict:
    outputs = [{"OutputKey": k, "OutputValue": v} for k, v in OUTPUTS.items()]
    when = datetime(2026, 11, 29, tzinfo=UTC)
    stack = {"StackName": STACK, "StackStatus": status, "CreationTime": when, "Outputs": outputs}
    return {"Stacks": [stack]}


def counted(waiting: int) -> dict:
    return {"Attributes": {"ApproximateNumberOfMessages": str(waiting)}}


def healthy(stubs: Stubs, leave_out: str = "") -> None:
    """Queue the answers of an account in order, except those of one service."""
    answers = {
        "sts": [("get_caller_identity", IDENTITY)],
        "ssm": [("get_parameter", {"Parameter": {"Value": "30"}})],
        "lambda": [("get_account_settings", concurrency(1000))],
        "dynamodb": [("describe_limits", {"TableMaxWriteCapacityUnits": 40000})],
        "cloudformation": [
            ("describe_stacks", described()),
            ("get_template", {"TemplateBody": json.dumps(TEMPLATE)}),
        ],
        "sqs": [("get_queue_attributes", counted(0))] * 2,
    }
    for service, queued in answers.items():
        for operation, answer in queued if service != leave_out else ():
            stubs(service).add_response(operation, answer)


def concurrency(free: int) -> dict:
    return {"AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": free}}


def told(found: list[Check], name: str) -> list[tuple[str, str]]:
    return [(str(c.health), c.found) for c in found if c.name == name]


def ill(found: list[Check]) -> list[Check]:
    return [c for c in found if c.health != "OK"]


def test_an_account_in_order(patient):
    stubs, examined = patient
    healthy(stubs)
    found = checks.examine(examined)
    assert ill(found) == []
    assert {c.name for c in found} == set(checks.CHECKS)
    assert told(found, "credentials") == [("OK", f"account 123456789012 as {IDENTITY['Arn']}")]
    assert told(found, "region") == [("OK", "us-east-1, AWS's own endpoint")]
    assert [health for health, _ in told(found, "cost ceiling")] == ["OK"] * 3
    stubs.all_asked()


def cost_checks(patient, **changes) -> list[Check]:
    stubs, examined = patient
    healthy(stubs)
    return [c for c in checks.examine(replace(examined, **changes)) if c.name == "cost ceiling"]


def test_each_stage_is_told_with_what_it_may_add_to_what_was_spent(patient, tmp_path):
    write_run(tmp_path, "r1", "validate")
    past = replace(history(tmp_path)[0], grade="aws")
    spent = cost.usd(cost.spent_micro_usd(past))
    found = cost_checks(patient, protocol=REHEARSAL, runs=[past])
    for check, name in zip(found, STAGES, strict=True):
        added = cost.room(REHEARSAL, stage(name, REHEARSAL).cells, [])["may_add_micro_usd"]
        assert check.health == "OK" and added > 0
        assert check.found == (
            f"stage {name} may add {cost.usd(added)} to {spent} estimated so far; "
            f"the ceiling of the study is {cost.usd(REHEARSAL.cost.ceiling_usd_cents * 10_000)}"
        )


def test_a_stage_that_would_be_refused_over_the_ceiling_is_a_problem(patient):
    probe, validate = (cost.room(STUDY, stage(n, STUDY).cells, [])["may_add_micro_usd"] for n in STAGES[:2])
    assert probe < 10_000 * (cents := -(-probe // 10_000)) < validate
    found = cost_checks(patient, protocol=replace(STUDY, cost=Cost(cents)))
    assert [str(check.health) for check in found] == ["OK", "PROBLEM", "PROBLEM"]
    assert "runner cost PACKAGE --billing" in found[1].next_step


def test_what_was_spent_is_unknown_when_a_package_on_aws_has_changed(patient, tmp_path):
    folder = write_run(tmp_path, "r1", "validate")
    past = replace(history(tmp_path)[0], grade="aws")
    next(folder.rglob("journal.jsonl")).write_bytes(b"")
    (check,) = cost_checks(patient, protocol=REHEARSAL, runs=[past])
    assert check.health == "UNKNOWN" and "its integrity is not whole" in check.found


@pytest.mark.parametrize("version", [None, "5"])
def test_a_missing_or_old_bootstrap_is_a_problem(patient, version):
    stubs, examined = patient
    healthy(stubs, leave_out="ssm")
    if version is None:
        stubs("ssm").add_client_error("get_parameter", "ParameterNotFound")
    else:
        stubs("ssm").add_response("get_parameter", {"Parameter": {"Value": version}})
    (problem,) = ill(checks.examine(examined))
    assert (problem.name, problem.health) == ("bootstrap", "PROBLEM")
    assert "cdk bootstrap" in problem.next_step


def test_too_little_concurrency_is_a_problem(patient):
    stubs, examined = patient
    healthy(stubs, leave_out="lambda")
    stubs("lambda").add_response("get_account_settings", concurrency(10))
    (problem,) = ill(checks.examine(examined))
    assert (problem.health, problem.found) == ("PROBLEM", "10 unreserved of 1000, 13 needed")
    assert "Service Quotas" in problem.next_step


def test_a_missing_stack_is_a_problem(patient):
    stubs, examined = patient
    healthy(stubs, leave_out="cloudformation")
    missing = f"Stack with id {STACK} does not exist"
    stubs("cloudformation").add_client_error("describe_stacks", "ValidationError", missing)
    (problem,) = ill(checks.examine(examined))
    assert (problem.name, problem.health) == ("stack", "PROBLEM")
    assert "us-east-1" in problem.found and "cdk deploy" in problem.next_step


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"])
def test_a_stack_that_is_not_at_rest_is_a_problem(patient, status):
    stubs, examined = patient
    healthy(stubs, leave_out="cloudformation")
    stubs("cloudformation").add_response("describe_stacks", described(status))
    (problem,) = ill(checks.examine(examined))
    assert problem.found == f"{STACK} is {status}"
    assert problem.next_step


def test_a_template_of_other_code_is_a_problem(patient):
    stubs, examined = patient
    healthy(stubs, leave_out="cloudformation")
    stubs("cloudformation").add_response("describe_stacks", described())
    other = json.dumps({"Resources": {"Table": {"Type": "AWS::S3::Bucket"}}})
    stubs("cloudformation").add_response("get_template", {"TemplateBody": other})
    (problem,) = ill(checks.examine(examined))
    assert "Resources.Table differs" in problem.found


def test_messages_in_a_source_queue_are_a_problem(patient):
    stubs, examined = patient
    healthy(stubs, leave_out="sqs")
    stubs("sqs").add_response("get_queue_attributes", counted(0))
    stubs("sqs").add_response("get_queue_attributes", counted(2))
    (problem,) = ill(checks.examine(examined))
    assert (problem.health, problem.found) == ("PROBLEM", "2 messages in the source queues")


@pytest.mark.parametrize(
    ("service", "operation", "name"),
    [
        ("sts", "get_caller_identity", "credentials"),
        ("ssm", "get_parameter", "bootstrap"),
        ("lambda", "get_account_settings", "lambda concurrency"),
        ("dynamodb", "describe_limits", "table capacity"),
        ("cloudformation", "describe_stacks", "stack"),
        ("sqs", "get_queue_attributes", "stack"),
    ],
)
@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "ExpiredToken"])
def test_a_question_that_is_refused_is_unknown_and_the_others_are_still_asked(
    patient, service, operation, name, code
):
    stubs, examined = patient
    healthy(stubs, leave_out=service)
    stubs(service).add_client_error(operation, code, "said so")
    found = checks.examine(examined)
    (unknown,) = ill(found)
    assert (unknown.name, unknown.health) == (name, "UNKNOWN")
    assert f"{code}: said so" in unknown.found
    assert unknown.next_step
    assert {c.name for c in found} == set(checks.CHECKS)


def test_no_cdk_is_only_a_note(patient, monkeypatch):
    stubs, examined = patient
    healthy(stubs)
    monkeypatch.setattr(checks.shutil, "which", lambda _tool: None)
    found = checks.examine(examined)
    ((health, note),) = told(found, "cdk")
    assert health == "OK" and "npm install -g aws-cdk" in note


def test_credentials_that_do_not_let_us_in_end_with_2(monkeypatch, capsys):
    stubs = Stubs()
    stubs("sts").add_client_error("get_caller_identity", "ExpiredToken", "said so")
    monkeypatch.setattr("runner.targets.accounts.aws_clients", lambda: stubs.client)
    assert cli.main(["doctor", "--target", "aws", "--json"]) == 2
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["health"] == "UNKNOWN"
    assert "have expired" in check["found"] and "sign in again" in check["next_step"]


def test_on_aws_ground_creates_nothing_without_yes(monkeypatch, capsys):
    stubs = Stubs().known()
    monkeypatch.setattr("runner.targets.accounts.aws_clients", lambda: stubs.client)
    assert cli.main(["doctor", "--ground", "--target", "aws"]) == 64
    said = capsys.readouterr().err
    assert "--yes" in said and commands_doctor.ground.CREATES in said
    stubs.all_asked()


def test_it_announces_the_target_first(monkeypatch, capsys):
    monkeypatch.setattr(target, "_credentials_resolve", lambda: True)
    stubs = Stubs()
    stubs("sts").add_client_error("get_caller_identity", "AccessDenied")
    monkeypatch.setattr("runner.targets.accounts.aws_clients", lambda: stubs.client)
    cli.main(["doctor"])
    assert capsys.readouterr().err.splitlines()[0].startswith("target: aws")
