"""The target is chosen once, announced, and never graded better than its endpoint."""

import pytest

from runner.errors import UsageError
from runner.names import Output
from runner.targets import target


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_without_credentials_it_is_local_and_says_emulated():
    chosen, said = target.choose(None)
    assert chosen == "local"
    assert "local" in said and "emulated" in said


def test_with_credentials_it_is_aws(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert target.choose(None)[0] == "aws"


def test_a_broken_profile_is_not_a_reason_to_run_somewhere_else(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "does-not-exist")
    assert target.choose(None)[0] == "aws"


@pytest.mark.parametrize("asked", ["local", "aws"])
def test_what_was_asked_wins(asked, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert target.choose(asked)[0] == asked


class FakeCloudFormation:
    class meta:
        endpoint_url = "http://127.0.0.1:4566"
        region_name = "us-east-1"


def described(status="CREATE_COMPLETE", leave_out=()):
    return {
        "StackName": "SucStudy1",
        "StackStatus": status,
        "Outputs": [
            {"OutputKey": key, "OutputValue": f"value of {key}"}
            for key in Output.all()
            if key not in leave_out
        ],
    }


def lab(**changes):
    return target.lab_from_stack("aws", described(**changes), lambda _service: FakeCloudFormation, "1")


def test_an_endpoint_that_is_not_amazons_is_graded_emulated_whatever_the_target(monkeypatch):
    assert lab().grade == "emulated"
    monkeypatch.setattr(
        FakeCloudFormation.meta, "endpoint_url", "https://cloudformation.us-east-1.amazonaws.com"
    )
    assert lab().grade == "aws"
    monkeypatch.setattr(FakeCloudFormation.meta, "endpoint_url", "https://amazonaws.com.example.org")
    assert lab().grade == "emulated"


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS", "DELETE_FAILED"])
def test_a_stack_that_is_not_at_rest_is_refused(status):
    with pytest.raises(UsageError) as refusal:
        lab(status=status)
    assert refusal.value.found == status


def test_a_stack_without_an_output_is_refused_by_its_name():
    with pytest.raises(UsageError) as refusal:
        lab(leave_out=(Output.BARRIER_TABLE,))
    assert refusal.value.expected == Output.BARRIER_TABLE
