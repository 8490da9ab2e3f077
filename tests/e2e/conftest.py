"""One folder for the runs of a session, and the command line as a user calls it."""

import pytest

from tests.e2e.lab import CommandLine


@pytest.fixture(scope="session")
def lab(tmp_path_factory) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("lab"))
