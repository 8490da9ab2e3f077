"""A stack is gone only if CloudFormation says so; anything else proves nothing and is told."""

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from runner.errors import UsageError
from runner.targets import labs
from tests.runner.pasts import REHEARSAL


def refusal(code, message):
    return ClientError({"Error": {"Code": code, "Message": message}}, "DescribeStacks")


@pytest.fixture
def answers(monkeypatch):
    """Let CloudFormation raise or return this."""

    def set_to(answer):
        def describe_stacks(StackName):
            assert StackName == "SucStudy1Rehearsal"
            if isinstance(answer, Exception):
                raise answer
            return {"Stacks": [answer]}

        made = SimpleNamespace(
            describe_stacks=describe_stacks, get_caller_identity=lambda: {"Account": "123456789012"}
        )
        monkeypatch.setattr(labs, "aws_clients", lambda: lambda _service: made)

    return set_to


def test_a_stack_that_does_not_exist_is_gone(answers):
    answers(refusal("ValidationError", "Stack with id SucStudy1Rehearsal does not exist"))
    assert labs.standing("aws", REHEARSAL) is None


@pytest.mark.parametrize(
    ("code", "message"), [("AccessDenied", "not authorized"), ("ValidationError", "bad name")]
)
def test_a_refusal_is_not_absence(answers, code, message):
    answers(refusal(code, message))
    with pytest.raises(ClientError):
        labs.standing("aws", REHEARSAL)


def test_a_stack_that_is_being_updated_is_not_gone(answers):
    answers({"StackName": "SucStudy1Rehearsal", "StackStatus": "UPDATE_IN_PROGRESS"})
    with pytest.raises(UsageError, match="cannot be used"):
        labs.standing("aws", REHEARSAL)


def test_without_a_running_local_cloud_its_stacks_are_gone(tmp_path, monkeypatch):
    monkeypatch.setenv("SUC_STATE_DIR", str(tmp_path))
    assert labs.standing("local", REHEARSAL) is None
