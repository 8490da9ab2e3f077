"""The session's assemblies."""

import pytest

from tests.stacks.synthesis import Assembly, synthesise


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The assembly of `study-1`."""
    return synthesise("study-1", tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The assembly of `study-1-rehearsal`."""
    return synthesise("study-1-rehearsal", tmp_path_factory.mktemp("rehearsal"))
