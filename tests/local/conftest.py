"""One cloud for the slow tests of a module, in a state folder of its own."""

import pytest

from runner.local.cloud import ensure
from runner.local.deploy import deploy
from tests.local.stackkit import assembly


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """Keep a module's state away from the developer's own `.suc`, and the environment from the next one's."""
    folder = tmp_path_factory.mktemp("suc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUC_STATE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def cloud(state):
    """Start one cloud for all tests that only use it."""
    with ensure() as running:
        yield running


@pytest.fixture(scope="module")
def tiny(cloud, tmp_path_factory):
    """Deploy the tiny stack once and return its outputs."""
    return deploy(cloud, assembly(tmp_path_factory.mktemp("cdk.out"), "Tiny"), "Tiny")
