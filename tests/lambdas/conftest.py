"""Fixtures of the handler tests: an account that is none, and a lab on moto."""

import os

import pytest
from moto import mock_aws

from tests.lambdas.lab import Lab


@pytest.fixture(autouse=True)
def no_account(monkeypatch):
    """No test may reach an account: invented keys, and none of the caller's own AWS environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture
def lab(no_account):
    with mock_aws():
        yield Lab()
