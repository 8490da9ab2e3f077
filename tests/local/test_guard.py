"""The guard alone, with small commands instead of engines."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runner.local import guard
from tests.local.processes import alive, eventually

LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="needs the subreaper")

# A command with a child in a session of its own, so that the process group does not reach it.
TREE = """
import json, os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
told = {"home": os.environ["TMPDIR"], "argument": sys.argv[1], "pids": [os.getpid(), child.pid]}
print(json.dumps(told), flush=True)
time.sleep(60)
"""


def start(*command: str) -> tuple[subprocess.Popen, dict]:
    process = subprocess.Popen(
        [sys.executable, "-I", guard.__file__, "--prefix", "suc-test-", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    return process, json.loads(process.stdout.readline())


@pytest.fixture
def tree():
    process, told = start(sys.executable, "-c", TREE, "{home}")
    assert Path(told["home"]).is_dir()
    assert told["argument"] == told["home"]
    yield process, told
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def nothing_left(told: dict) -> bool:
    return not Path(told["home"]).exists() and alive(told["pids"]) == []


@LINUX_ONLY
def test_the_end_of_the_callers_pipe_ends_the_tree_and_removes_the_folder(tree):
    process, told = tree
    process.stdin.close()
    assert process.wait(60) == 0
    assert nothing_left(told)


@LINUX_ONLY
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_tree_and_removes_the_folder(tree, number):
    process, told = tree
    process.send_signal(number)
    assert process.wait(60) == 0
    assert nothing_left(told)


@LINUX_ONLY
def test_the_end_of_the_command_ends_its_orphans_and_is_reported(tree):
    process, told = tree
    os.kill(told["pids"][0], signal.SIGKILL)
    assert process.wait(60) == 1
    assert nothing_left(told)


@LINUX_ONLY
def test_a_detached_guard_outlives_the_pipe_and_ends_on_sigterm(tree):
    process, told = tree
    process.stdin.write(b"d")
    process.stdin.close()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    assert alive(told["pids"]) == told["pids"]
    process.terminate()
    assert process.wait(60) == 0
    assert nothing_left(told)


@LINUX_ONLY
def test_sigkill_of_the_guard_takes_the_command_with_it(tree):
    process, told = tree
    process.kill()
    process.wait(60)
    assert eventually(lambda: alive(told["pids"][:1]) == [])
    os.kill(told["pids"][1], signal.SIGKILL)
    shutil.rmtree(told["home"])


def test_a_command_that_cannot_start_leaves_no_folder(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-I", guard.__file__, "/no/such/command"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert ended.returncode != 0
    assert list(tmp_path.iterdir()) == []
