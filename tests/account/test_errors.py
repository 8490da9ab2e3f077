"""What AWS refuses ends in one paragraph, one next step and the right code, and starts nothing."""

import ast
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError

from lambdas.shared.journal import AppendExhausted
from runner import cli
from runner.errors import EXIT_HARNESS, EXIT_USAGE, LabError, UsageError
from runner.names import Output
from runner.protocol import load
from runner.runs.run import preflight
from runner.targets import target
from runner.targets.aws_errors import telling
from runner.targets.deployed import differences, require_synthesised
from tests.account.stubs import IDENTITY, Stubs

STACK = "SucStudy1"
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stubs(monkeypatch, tmp_path):
    made = Stubs("eu-west-1")
    monkeypatch.setattr(target, "aws_clients", lambda: made.client)
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path / "runs"))
    return made


def run(capsys, tmp_path) -> tuple[int, str]:
    """`run --target aws`; no trial may exist afterwards, and the stubs refuse every call of one."""
    code = cli.main(["run", "--scenario", "CONTROL", "--target", "aws"])
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err and "fault of the lab" not in told.err
    assert list((tmp_path / "runs").rglob("index.json")) == []
    assert list((tmp_path / "runs").rglob("trial*")) == []
    paragraph = told.err[told.err.index("error: ") :]
    assert paragraph.count("next:") == 1
    return code, paragraph


def stack(status: str, **more: object) -> dict:
    described = {
        "StackName": STACK,
        "StackStatus": status,
        "CreationTime": datetime(2026, 11, 29, tzinfo=UTC),
    }
    return {"Stacks": [{**described, **more}]}


REFUSALS = {
    "ThrottlingException": "throttling this account",
    "Throttling": "throttling this account",
    "AccessDenied": "refused access",
    "ExpiredToken": "have expired",
    "ExpiredTokenException": "have expired",
    "RequestExpired": "have expired",
    "InvalidClientTokenId": "does not know these credentials",
    "UnrecognizedClientException": "does not know these credentials",
    "OptInRequired": "does not know these credentials",
    "InternalFailure": "AWS refused",
}


@pytest.mark.parametrize("code", REFUSALS)
@pytest.mark.parametrize(
    ("service", "operation"), [("sts", "get_caller_identity"), ("cloudformation", "describe_stacks")]
)
def test_a_refusal_names_its_code_and_ends_with_70(stubs, capsys, tmp_path, service, operation, code):
    if service != "sts":
        stubs.known()
    stubs(service).add_client_error(operation, code, "said so")
    ended, said = run(capsys, tmp_path)
    assert ended == EXIT_HARNESS
    assert REFUSALS[code] in said
    assert f"{code}: said so" in said


@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_in_the_last_look_before_a_run_is_told_too(stubs, code):
    outputs = {key: "x" for key in Output.all()} | {Output.PROTOCOL_SHA256: load("study-1").sha256}
    listed = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
    described = stack("CREATE_COMPLETE", Outputs=listed)["Stacks"][0]
    lab = target.lab_from_stack("aws", described, stubs.client, "123456789012")
    stubs("sqs").add_client_error("get_queue_attributes", code, "said so")
    with pytest.raises(LabError, match=REFUSALS[code]), telling("looking at the queues"):
        preflight(lab, load("study-1"))


def test_a_missing_stack_names_region_account_and_cdk_deploy(stubs, capsys, tmp_path):
    missing = f"Stack with id {STACK} does not exist"
    stubs.known()("cloudformation").add_client_error("describe_stacks", "ValidationError", missing)
    ended, said = run(capsys, tmp_path)
    assert ended == EXIT_USAGE
    # A wrong region looks exactly like this, so it is named.
    assert "eu-west-1" in said and IDENTITY["Account"] in said and "AWS_REGION" in said
    assert "cdk deploy" in said and "--target local" in said


@pytest.mark.parametrize(
    ("status", "next_step"),
    [
        ("CREATE_IN_PROGRESS", "wait until"),
        ("UPDATE_IN_PROGRESS", "wait until"),
        ("UPDATE_ROLLBACK_IN_PROGRESS", "wait until"),
        ("DELETE_IN_PROGRESS", "wait until"),
        ("UPDATE_ROLLBACK_COMPLETE", "taken back"),
        ("ROLLBACK_COMPLETE", "runner cleanup"),
        ("ROLLBACK_FAILED", "runner cleanup"),
        ("CREATE_FAILED", "runner cleanup"),
        ("DELETE_FAILED", "runner cleanup"),
    ],
)
def test_a_stack_that_is_not_at_rest_says_what_to_do(stubs, capsys, tmp_path, status, next_step):
    answer = stack(status, StackStatusReason="a resource failed")
    stubs.known()("cloudformation").add_response("describe_stacks", answer)
    ended, said = run(capsys, tmp_path)
    assert ended == EXIT_USAGE
    assert f"{status} a resource failed" in said
    assert next_step in said


@pytest.fixture
def no_credentials(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path / "runs"))


def test_no_credentials(no_credentials, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    ended, said = run(capsys, tmp_path)
    assert ended == EXIT_USAGE
    assert "no usable AWS credentials" in said and "--target local" in said


def test_half_credentials(no_credentials, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    ended, said = run(capsys, tmp_path)
    assert ended == EXIT_USAGE
    assert "no usable AWS credentials" in said


def test_a_profile_that_is_not_there(no_credentials, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AWS_PROFILE", "does-not-exist")
    ended, said = run(capsys, tmp_path)
    assert ended == EXIT_USAGE
    assert "no usable AWS credentials" in said and "does-not-exist" in said


def test_no_region(no_credentials, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    ended, said = run(capsys, tmp_path)
    assert ended == EXIT_USAGE
    assert "no usable AWS region" in said and "AWS_REGION" in said


def test_a_region_that_is_none(no_credentials, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "not a region")
    ended, said = run(capsys, tmp_path)
    assert ended == EXIT_USAGE
    assert "no usable AWS region" in said


def test_no_answer(no_credentials, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    # Port 1 on loopback: nothing listens there.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    ended, said = run(capsys, tmp_path)
    assert ended == EXIT_HARNESS
    assert "AWS gave no answer" in said


def template(**resources: dict) -> dict:
    return {"Resources": resources, "Rules": {"a": 1}}


def test_the_deployed_template_must_be_the_synthesised_one(tmp_path):
    stubs = Stubs()
    ours = template(Table={"Type": "T"}, Queue={"Type": "Q"})
    (tmp_path / f"{STACK}.template.json").write_text(json.dumps(ours))
    stubs("cloudformation").add_response("get_template", {"TemplateBody": json.dumps(ours)})
    require_synthesised(stubs.client, STACK, tmp_path)
    theirs = template(Table={"Type": "T", "Properties": {}}, Topic={"Type": "N"})
    stubs("cloudformation").add_response("get_template", {"TemplateBody": json.dumps(theirs)})
    with pytest.raises(UsageError) as refusal:
        require_synthesised(stubs.client, STACK, tmp_path)
    assert refusal.value.found == (
        "Resources.Queue is not deployed; Resources.Table differs; "
        "Resources.Topic is deployed and not synthesised"
    )
    assert "cdk deploy" in refusal.value.next_step


def test_differences_name_sections_and_count():
    ours = template(**{f"R{n}": {"Type": "T"} for n in range(5)})
    assert differences(ours, ours) == []
    assert len(differences(template(), ours)) == 5
    assert differences({**ours, "Rules": None}, ours) == ["Rules"]
    assert differences("Resources: {}", ours) == ["the deployed template is not JSON"]


def test_every_client_has_explicit_timeouts_and_attempts(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    # What the environment says about attempts must not matter (CASES D13, D14).
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "7")
    monkeypatch.setenv("AWS_RETRY_MODE", "legacy")
    client = target.aws_clients()
    for service in ("lambda", "sqs", "dynamodb", "cloudformation", "logs", "sts", "iam", "s3"):
        config = client(service).meta.config
        once = service in ("lambda", "sqs")
        assert config.retries == {"mode": "standard", "total_max_attempts": 1 if once else 4}
        assert config.connect_timeout == 5
        assert config.read_timeout == (960 if service == "lambda" else 20)


MAKING = ("ession.client", "ession().client", "boto3.client", "create_client", "boto3.resource")
MAKERS = {"runner/targets/target.py", "runner/local/clients.py", "runner/doctor/ground_handlers.py"}


def test_d13_no_client_is_made_anywhere_else():
    """Every client comes from a factory that sets timeouts and total_max_attempts."""
    found = set()
    for path in sorted((PROJECT / "runner").rglob("*.py")):
        calls = [
            ast.unparse(n.func) for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)
        ]
        if any(call.endswith(MAKING) for call in calls):
            found.add(path.relative_to(PROJECT).as_posix())
    assert found == MAKERS
    for name in MAKERS:
        text = (PROJECT / name).read_text()
        assert all(word in text for word in ("connect_timeout", "read_timeout", "total_max_attempts"))


def test_a_journal_that_no_turn_could_write_is_told_by_what_the_service_did(monkeypatch, capsys):
    def run(_args):
        lost = EndpointConnectionError(endpoint_url="http://127.0.0.1:9")
        raise AppendExhausted("event e of trial t1: no success in 40 turns") from lost

    monkeypatch.setattr("runner.commands.runs.main", run)
    assert cli.main(["runs"]) == EXIT_HARNESS
    told = capsys.readouterr().err
    assert (
        "error: AWS gave no answer while running runs (event e of trial t1: no success in 40 turns)" in told
    )
    assert "EndpointConnectionError" in told and "a fault of the lab" not in told
