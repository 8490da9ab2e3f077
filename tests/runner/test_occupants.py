"""`local down` ends no cloud under a run that goes on, and every cloud whose runner died."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from botocore.exceptions import ConnectTimeoutError

from runner.cli import main
from runner.commands import cleanup as commands_cleanup
from runner.commands import local as cli
from runner.errors import UsageError
from runner.local import launch
from runner.names import Output, stack_name
from runner.runs import occupants as asking
from runner.runs import state
from runner.runs.lease import KEY
from runner.runs.state import State, StateLog
from tests.runner.pasts import write_run
from tests.runner.test_lease import TABLE, client  # noqa: F401 - a fixture

NOW = 1_000_000
STACK = stack_name("study-1-rehearsal")


@pytest.fixture
def cloud(client, tmp_path, monkeypatch):  # noqa: F811 - the fixture
    """A cloud that `local up` left, with one stack whose journal table is on moto; `ended` tells its end."""
    described = {"Outputs": [{"OutputKey": Output.JOURNAL_TABLE, "OutputValue": TABLE}]}
    monkeypatch.setattr(asking, "described_stack", lambda _c, name: described if name == STACK else None)
    made = SimpleNamespace(client=lambda *_args, **_kw: client, ended=[], dynamodb=client)
    running = launch.Running("http://127.0.0.1:1", os.getpid(), str(tmp_path), True, "", {})
    monkeypatch.setattr("runner.local.cloud.Cloud", lambda _running: made)
    monkeypatch.setattr(cli.launch, "find", lambda: running)
    monkeypatch.setattr(cli.launch, "stop", lambda: made.ended.append(running) or running)
    monkeypatch.setattr("runner.clock.SystemClock.now_ms", lambda _self: NOW)
    monkeypatch.setenv("SUC_STATE_DIR", str(tmp_path / "suc"))
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path / "runs"))
    (tmp_path / "runs").mkdir()
    return made


def held_by(cloud, owner, until_ms=NOW + 30_000):
    item = {**KEY, "owner": {"S": owner}, "until_ms": {"N": str(until_ms)}}
    cloud.dynamodb.put_item(TableName=TABLE, Item=item)


@pytest.fixture
def living(tmp_path):
    """A run whose folder is locked by a process, as its state log does."""
    folder = write_run(tmp_path / "runs", "r-living", ended=False)
    log = StateLog(folder, lambda: NOW)
    yield folder
    log.close()


def refusal(capsys):
    assert main(["local", "down", "--json"]) == 64
    said = capsys.readouterr()
    assert said.out == "" and "next:" in said.err and "--force" in said.err
    return said.err


def test_a_cloud_is_not_ended_under_a_run_that_goes_on(cloud, living, capsys):
    held_by(cloud, "r-living")
    assert "run r-living: its process lives" in refusal(capsys)
    assert cloud.ended == []


def test_force_ends_it_and_says_under_whom(cloud, living, capsys):
    held_by(cloud, "r-living")
    assert main(["local", "down", "--force", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {"running": False, "ended": True}
    assert "ended under a run (run r-living" in said.err
    assert len(cloud.ended) == 1


def test_a_live_lease_of_a_run_that_is_kept_elsewhere_refuses_too(cloud, capsys):
    held_by(cloud, "r-elsewhere")
    assert "run r-elsewhere: its lease has 30 s left" in refusal(capsys)
    assert cloud.ended == []


@pytest.mark.parametrize("until_ms", [NOW + 30_000, NOW - 1])
def test_a_cloud_whose_runner_died_is_ended_and_the_run_is_named(cloud, tmp_path, capsys, until_ms):
    write_run(tmp_path / "runs", "r-dead", ended=False)
    held_by(cloud, "r-dead", until_ms)
    assert main(["local", "down"]) == 0
    assert "run r-dead died on it" in capsys.readouterr().err
    assert len(cloud.ended) == 1


def test_an_ended_run_or_an_expired_lease_is_not_spoken_of(cloud, tmp_path, capsys):
    write_run(tmp_path / "runs", "r-ended")
    for owner, until_ms in (("r-ended", NOW + 30_000), ("r-elsewhere", NOW - 1)):
        held_by(cloud, owner, until_ms)
        assert main(["local", "down"]) == 0
        assert capsys.readouterr().err == "local cloud: ended\n"


def test_a_run_on_a_cloud_of_its_own_does_not_matter(cloud, living):
    assert main(["local", "down"]) == 0
    assert len(cloud.ended) == 1


def test_a_cloud_that_does_not_answer_is_ended_unless_a_local_run_lives(cloud, tmp_path, capsys, monkeypatch):
    def silent(*_):
        raise ConnectTimeoutError(endpoint_url="http://127.0.0.1:1")

    monkeypatch.setattr(asking, "described_stack", silent)
    folder = write_run(tmp_path / "runs", "r1", ended=False)
    assert main(["local", "down"]) == 0
    capsys.readouterr()
    log = StateLog(folder, lambda: NOW)
    assert "run r1: its process lives, and the cloud does not answer" in refusal(capsys)
    log.close()


def test_a_run_lives_as_long_as_its_process(tmp_path):
    folder = write_run(tmp_path, "r1", ended=False)
    assert state.lives(folder) is False
    code = "import time, pathlib; from runner.runs.state import StateLog; "
    code += (
        f"log = StateLog(pathlib.Path({str(folder)!r}), lambda: 1); print('up', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        assert state.lives(folder) is True
    finally:
        process.kill()
        process.communicate()
    assert state.lives(folder) is False
    assert state.read(folder)[-1]["state"] == State.WAITING


@pytest.fixture
def cleaning(client, monkeypatch):  # noqa: F811 - the fixture
    """`cleanup` as far as the stack's deletion, which `deleted` tells of."""
    deleted = []
    made = SimpleNamespace(run=lambda described: deleted.append(described) or {})
    monkeypatch.setattr(commands_cleanup, "Cleanup", lambda *_: made)
    account = SimpleNamespace(target="local", client=lambda _service: client)
    clock = SimpleNamespace(now_ms=lambda: NOW)

    def clean(table=TABLE, force=False):
        described = {"Outputs": [{"OutputKey": Output.JOURNAL_TABLE, "OutputValue": table}]}
        commands_cleanup._clean_up(SimpleNamespace(force=force, yes=True), account, described, clock)
        return len(deleted)

    return SimpleNamespace(clean=clean, deleted=deleted, dynamodb=client)


def test_cleanup_deletes_no_stack_under_a_run_unless_forced(cleaning):
    held_by(cleaning, "r1")
    with pytest.raises(UsageError, match="run r1, whose lease has 30 s left"):
        cleaning.clean()
    assert cleaning.deleted == []
    assert cleaning.clean(force=True) == 1


def test_cleanup_deletes_a_stack_whose_lease_has_expired_or_whose_table_is_gone(cleaning):
    held_by(cleaning, "r1", NOW - 1)
    assert cleaning.clean() == 1
    assert cleaning.clean(table="gone") == 2
