"""Start a cloud under a guard, know whether one lives, end it, and sweep up after dead guards."""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from runner.errors import LabError
from runner.local import guard, ministack
from runner.places import PROJECT_ROOT, state_dir

HOME_PREFIX = "suc-cloud-"
# Generous: they end a hang, and no healthy machine comes near them.
START_LIMIT_S = 150
STOP_LIMIT_S = 60
KEPT_LOGS = 5
LOG_TAIL_LINES = 15
# Every cold start unpacks a layer of some 600 files: about 1 s on a disk, 0.2 s in memory.
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 1024**3
DURABLE_LIBRARY = "aws-durable-execution-sdk-python-testing"


@dataclass(frozen=True)
class Running:
    """A cloud that is up; what the state file says."""

    endpoint: str
    guard_pid: int
    home: str
    iam: bool
    logs: str
    versions: dict[str, str]


@dataclass
class Launched:
    """A cloud that we started ourselves, and the pipe that ties it to us."""

    running: Running
    process: subprocess.Popen

    def detach(self) -> None:
        """Let the cloud outlive us."""
        self.process.stdin.write(b"d")
        self.process.stdin.flush()
        self.process.stdin.close()

    def end(self) -> None:
        """End the cloud and wait until nothing is left of it."""
        self.process.stdin.close()
        self.process.wait(STOP_LIMIT_S)


def start(*, iam: bool, note: Callable[[str], None]) -> Launched:
    """Start a cloud tied to this process and wait until it is healthy."""
    python = ministack.find_python(note)
    sweep()
    logs = _new_logs()
    plane = [sys.executable, "-m", "runner.local.plane", "--ministack-python", python]
    plane += ["--iam", "on" if iam else "off", "--logs", str(logs)]
    with (logs / "cloud.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", guard.__file__, "--prefix", HOME_PREFIX, *plane],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(),
            cwd=PROJECT_ROOT,
            # Its own session: Ctrl-C ends the runner, which ends the cloud when it is done with it.
            start_new_session=True,
        )
    answer = _first_line(process)
    if "endpoint" not in answer:
        process.stdin.close()
        process.wait(STOP_LIMIT_S)
        raise LabError(
            "the local cloud did not start",
            found=f"{answer.get('error', 'no answer')}; the end of its logs:\n{_tail(logs)}",
        )
    versions = {"ministack": ministack.VERSION, DURABLE_LIBRARY: version(DURABLE_LIBRARY)}
    running = Running(answer["endpoint"], process.pid, answer["home"], iam, str(logs), versions)
    return Launched(running, process)


def _environment() -> dict[str, str]:
    """Return our environment without what would change how the engines behave.

    Above all no AWS setting of the user: Lambda workers inherit this, credentials included.
    """
    dropped = ("AWS_", "PYTHON", "MINISTACK_", "LOCALSTACK_", "VIRTUAL_ENV")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    kept["TMPDIR"] = str(_temporary())
    return {**kept, "AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


def _temporary() -> Path:
    """Return where clouds keep their folders: in memory if there is room, unless TMPDIR is set."""
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK):
        room = os.statvfs(MEMORY)
        if room.f_bavail * room.f_frsize >= MEMORY_NEEDED:
            return MEMORY
    return Path(tempfile.gettempdir())


def _first_line(process: subprocess.Popen) -> dict:
    ready, _, _ = select.select([process.stdout], [], [], START_LIMIT_S)
    line = process.stdout.readline() if ready else b""
    process.stdout.close()
    return json.loads(line) if line.strip() else {}


def _new_logs() -> Path:
    """Make this cloud's log folder; the oldest of earlier ones go."""
    parent = state_dir() / "logs"
    parent.mkdir(parents=True, exist_ok=True)
    logs = Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%dT%H%M%S-"), dir=parent))
    for old in sorted(parent.iterdir())[:-KEPT_LOGS]:
        shutil.rmtree(old, ignore_errors=True)
    return logs


def _tail(logs: Path) -> str:
    lines = []
    for log in sorted(logs.glob("*.log")):
        lines += [
            f"    {log.name}: {line}"
            for line in log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        ]
    return "\n".join(lines)


# -- the state file ------------------------------------------------------------------------------


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """Let one `up` or `down` run at a time."""
    state_dir().mkdir(parents=True, exist_ok=True)
    with (state_dir() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remember(running: Running) -> None:
    """Write the state file in one step."""
    fresh = state_dir() / "cloud.json.new"
    fresh.write_text(json.dumps(asdict(running), indent=2) + "\n")
    fresh.replace(state_dir() / "cloud.json")


def find() -> Running | None:
    """Return the cloud of `local up` if it lives."""
    try:
        running = Running(**json.loads((state_dir() / "cloud.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return running if _lives(Path(running.home)) else None


def stop() -> Running | None:
    """End the cloud of `local up` and forget it; return what was ended."""
    running = find()
    if running:
        os.kill(running.guard_pid, signal.SIGTERM)
        end = time.monotonic() + STOP_LIMIT_S
        while Path(running.home).exists() and time.monotonic() < end:
            time.sleep(0.02)
    (state_dir() / "cloud.json").unlink(missing_ok=True)
    sweep()
    return running


# -- dead guards ---------------------------------------------------------------------------------


def _lives(home: Path) -> bool:
    """Whether the guard of this folder lives: it alone holds the lock."""
    try:
        fd = os.open(home / "lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def sweep() -> list[Path]:
    """Remove what guards left that could not clean up (SIGKILL, power); return their folders."""
    swept = []
    # Both places, whichever the dead one used: there was room in memory then, or there was not.
    parents = {_temporary(), Path(tempfile.gettempdir())}
    for home in (home for parent in sorted(parents) for home in parent.glob(HOME_PREFIX + "*")):
        try:
            ours = home.stat().st_uid == os.getuid() and (home / "lock").exists()
        except OSError:
            continue
        if ours and not _lives(home):
            for pid in _processes_of(home):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(home, ignore_errors=True)
            swept.append(home)
    return swept


def _processes_of(home: Path) -> list[int]:
    """Return the pids that still have this folder as TMPDIR (Linux), such as a busy Lambda worker."""
    wanted, found = f"TMPDIR={home}".encode(), []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in environ.read_bytes().split(b"\0"):
                found.append(int(environ.parent.name))
    return found
