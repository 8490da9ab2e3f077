"""Nothing outlives a cloud: not after `down`, not after SIGKILL of its owner or of its guard."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from runner.local.cloud import Cloud, ensure
from runner.local.deploy import deploy
from runner.places import PROJECT_ROOT
from tests.local.processes import alive, descendants, eventually, processes_of
from tests.local.stackkit import assembly

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="walks /proc"),
]

# A runner in the middle of a trial: its cloud is its own, and a Lambda worker is busy.
OWNER = """
import json, sys
from runner.local.cloud import ensure
from runner.local.deploy import deploy
with ensure() as cloud:
    out = deploy(cloud, sys.argv[1], "Tiny")
    own = cloud._launched
    print(json.dumps({"home": own.running.home, "guard": own.process.pid}), flush=True)
    cloud.client("lambda").invoke(FunctionName=out["Plain"], Payload=b'{"sleep": 50}')
"""


@pytest.fixture
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("SUC_STATE_DIR", str(tmp_path / "suc"))
    return tmp_path


def local(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "runner", "local", *arguments],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def workers(home: str) -> list[int]:
    found = []
    for pid in processes_of(home):
        try:
            if b"_worker.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def busy_call(cloud: Cloud, function: str) -> None:
    """Start a call that keeps a worker busy; its end is of no interest."""

    def call():
        with contextlib.suppress(BotoCoreError, ClientError):
            cloud.client("lambda").invoke(FunctionName=function, Payload=b'{"sleep": 50}')

    threading.Thread(target=call, daemon=True).start()


def test_up_second_up_status_down_leave_nothing(own_state):
    up = local("up", "--json")
    assert up.returncode == 0, up.stderr
    told = json.loads(up.stdout)
    again = local("up")
    assert (again.returncode, again.stdout.strip()) == (0, told["endpoint"])
    assert "already running" in again.stderr
    other = local("up", "--iam", "off")
    assert (other.returncode, other.stdout) == (64, "")
    assert "--iam" in other.stderr
    status = json.loads(local("status", "--json").stdout)
    assert (status["running"], status["healthy"], status["iam"]) == (True, True, True)
    with ensure() as cloud:
        assert (cloud.owned, cloud.endpoint) == (False, told["endpoint"])
        out = deploy(cloud, assembly(own_state, "Tiny"), "Tiny")
        cloud.client("lambda").invoke(FunctionName=out["Plain"], Payload=b"{}")
        busy_call(cloud, out["Plain"])
        assert eventually(lambda: len(workers(told["home"])) == 1)
    assert json.loads(local("status", "--json").stdout)["healthy"]
    family = descendants(told["guard_pid"])
    assert len(family) >= 4
    assert local("down").returncode == 0
    # The folder goes first; the guard that removed it ends a moment later.
    assert eventually(lambda: alive(family) == [])
    assert processes_of(told["home"]) == []
    assert not Path(told["home"]).exists()
    assert not (own_state / "suc" / "cloud.json").exists()
    second = local("down")
    assert (second.returncode, second.stdout) == (0, "")
    assert json.loads(local("status", "--json").stdout) == {"running": False}


def test_sigkill_of_the_owner_in_the_middle_of_a_busy_call_leaves_nothing(own_state):
    folder = assembly(own_state, "Tiny")
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder)], cwd=PROJECT_ROOT, stdout=subprocess.PIPE
    )
    told = json.loads(owner.stdout.readline())
    assert eventually(lambda: len(workers(told["home"])) == 1)
    family = descendants(told["guard"])
    owner.kill()
    owner.wait()
    assert eventually(lambda: not Path(told["home"]).exists())
    assert eventually(lambda: alive(family) == [])
    assert processes_of(told["home"]) == []


def test_an_engine_that_dies_ends_the_cloud(own_state):
    with ensure() as cloud:
        home = cloud._launched.running.home
        (engine,) = [p for p in processes_of(home) if b"hypercorn" in Path(f"/proc/{p}/cmdline").read_bytes()]
        os.kill(engine, signal.SIGKILL)
        assert eventually(lambda: not Path(home).exists())
        assert processes_of(home) == []


def test_sigkill_of_the_guard_ends_the_engines_and_the_next_start_sweeps_the_rest(own_state):
    up = json.loads(local("up", "--json").stdout)
    with ensure() as cloud:
        out = deploy(cloud, assembly(own_state, "Tiny"), "Tiny")
        busy_call(cloud, out["Plain"])
        assert eventually(lambda: len(workers(up["home"])) == 1)
        os.kill(up["guard_pid"], signal.SIGKILL)
        # The engines die with the guard; the busy worker is what only the sweep can find.
        assert eventually(lambda: processes_of(up["home"]) == workers(up["home"]))
    assert json.loads(local("status", "--json").stdout) == {"running": False}
    again = json.loads(local("up", "--json").stdout)
    assert again["endpoint"] != up["endpoint"]
    assert not Path(up["home"]).exists()
    assert processes_of(up["home"]) == []
    assert local("down").returncode == 0


def test_iam_off_lets_every_role_through(own_state):
    up = json.loads(local("up", "--iam", "off", "--json").stdout)
    try:
        with ensure() as cloud:
            assert not cloud.iam
            out = deploy(cloud, assembly(own_state, "Tiny"), "Tiny")
            answer = cloud.assume_role(out["NoGrants"], "lambda").invoke(
                FunctionName=out["Plain"], Payload=b'{"a": 1}'
            )
            echoed = json.load(answer["Payload"])
            assert echoed["echo"] == {"a": 1}
            # Workers unpack into the guard's folder, which goes with it.
            assert echoed["tmp"] == up["home"]
    finally:
        assert local("down").returncode == 0
