"""MiniStack: found or fetched through uv, in an environment of its own.

It pins a botocore that the durable SDK cannot live with, so it never shares our environment.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from runner.errors import LabError

ACCOUNT = "000000000000"
REGION = "us-east-1"
# Root: the access key that is the account id.
ROOT = {"aws_access_key_id": ACCOUNT, "aws_secret_access_key": "test"}
VERSION = "1.5.33"
REQUIREMENT = f"ministack=={VERSION}"
FETCH_LIMIT_S = 600


def find_uv() -> list[str]:
    """Return the command that runs uv, or say how to install it."""
    # `uv run` names its own executable in UV, also where no uv is on the PATH.
    for path in (os.environ.get("UV"), shutil.which("uv")):
        if path and os.access(path, os.X_OK):
            return [path]
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise LabError(
        "the local cloud needs uv to give MiniStack its own environment",
        expected="uv on the PATH, or the uv package in this Python",
        found="neither",
        next_step="pip install uv",
    )


def find_python(note) -> str:
    """Return the Python of MiniStack's own environment; fetches it on first use and notes that.

    We start that Python ourselves instead of `uv tool run ministack`: one process less to guard.
    """
    uv = find_uv()
    found = _tool_python(uv, offline=True)
    if found.returncode:
        note(f"fetching MiniStack {VERSION} (first use) ...")
        found = _tool_python(uv, offline=False)
    python = found.stdout.strip()
    if found.returncode or not Path(python).is_file():
        raise LabError(
            f"uv could not make an environment for {REQUIREMENT}",
            expected="a package index that uv can reach, or a warm uv cache",
            found=(found.stderr.strip().splitlines() or ["no message"])[-1],
            next_step=f"uv tool run --from {REQUIREMENT} python -V",
        )
    return python


def _tool_python(uv: list[str], *, offline: bool) -> subprocess.CompletedProcess:
    command = [*uv, "tool", "run", *(["--offline"] if offline else [])]
    command += ["--python", sys.executable, "--from", REQUIREMENT]
    command += ["python", "-c", "import sys; print(sys.executable)"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=FETCH_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {FETCH_LIMIT_S} s")


def command(python: str, listener_fd: int) -> list[str]:
    """Return what `ministack -d` runs, but in the foreground, in one process, on a socket that listens.

    An idle connection is kept for an hour: one that closes just as it is used again fails a request.
    """
    bind = ["--bind", f"fd://{listener_fd}", "--workers", "0", "--keep-alive", "3600"]
    return [python, "-m", "hypercorn", "ministack.app:app", *bind, "--log-level", "WARNING"]


def settings(*, gateway_port: int, iam: bool) -> dict[str, str]:
    """Return MiniStack's environment variables. Lambda workers inherit them.

    GATEWAY_PORT is the port in every URL that MiniStack hands out (queue URLs above all). It is
    our gateway's, not the one MiniStack listens on, so that no client ever bypasses the gateway.
    """
    return {
        "GATEWAY_PORT": str(gateway_port),
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "AUTH": "true" if iam else "false",
        # What the handlers call: the gateway, so that they reach both engines.
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{gateway_port}",
    }
