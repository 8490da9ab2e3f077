"""A local cloud with the rehearsal's stack for slow tests; an empty account on moto for fast ones."""

import os

import pytest
from moto import mock_aws

from runner.local import launch
from runner.local.cloud import Cloud
from runner.local.deploy import deploy
from runner.names import stack_name
from runner.targets.assembly import synthesise
from tests.account.bench import Bench

REHEARSAL = "study-1-rehearsal"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    """Start a cloud in a state folder of its own, with IAM enforced; commands find it as if by `local up`.

    For one module, because it sets the environment, which the next module's tests may want otherwise.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUC_STATE_DIR", str(tmp_path_factory.mktemp("suc")))
        patch.setenv("SUC_RUNS_DIR", str(tmp_path_factory.mktemp("runs")))
        launched = launch.start(iam=True, note=print)
        launch.remember(launched.running)
        with Cloud(launched.running, launched) as running:
            yield running


@pytest.fixture(scope="session")
def assembly():
    """Return the synthesised assembly of the rehearsal."""
    return synthesise(REHEARSAL)[0]


@pytest.fixture(scope="module")
def stack(cloud, assembly):
    """Deploy the rehearsal's stack, if another module has deleted it, and return its name."""
    deploy(cloud, assembly, stack_name(REHEARSAL))
    return stack_name(REHEARSAL)


@pytest.fixture
def bench(monkeypatch):
    """An empty account on moto, with invented keys and none of the caller's own AWS environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        yield Bench(monkeypatch)
