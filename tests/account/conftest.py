"""One local cloud with the rehearsal's stack for the slow tests of this folder."""

import pytest

from runner.assembly import synthesise
from runner.local.cloud import ensure
from runner.local.deploy import deploy
from runner.names import stack_name

REHEARSAL = "study-1-rehearsal"


@pytest.fixture(scope="session")
def cloud(tmp_path_factory):
    """Start a cloud in a state folder of its own, with IAM enforced."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUC_STATE_DIR", str(tmp_path_factory.mktemp("suc")))
        with ensure(iam=True) as running:
            yield running


@pytest.fixture(scope="session")
def assembly():
    """Return the synthesised assembly of the rehearsal."""
    return synthesise(REHEARSAL)[0]


@pytest.fixture(scope="session")
def stack(cloud, assembly):
    """Deploy the rehearsal's stack and return its name."""
    deploy(cloud, assembly, stack_name(REHEARSAL))
    return stack_name(REHEARSAL)
