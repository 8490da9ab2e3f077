"""guard.py [options] CMD...: run CMD so that no process and no temporary folder outlives it.

A stand-alone script (standard library only). It makes one temporary folder, gives it to CMD as
TMPDIR and as the last argument's `{home}`, and removes both the processes and the folder when

- the caller's end of our stdin closes (the caller is gone, SIGKILL included). A byte `d` on stdin
  detaches instead: `local up` ends and the cloud stays;
- SIGTERM, SIGINT or SIGHUP arrives;
- CMD ends by itself.

A pipe and not PR_SET_PDEATHSIG ties us to the caller, because that signal fires when the *thread*
that forked ends. On Linux we are the subreaper, so Lambda workers orphaned by MiniStack become our
children and are found; elsewhere the process group alone must do.

The folder holds a file `lock` under an flock for as long as we live. Whoever can take that lock
knows that the guard is dead, whatever its pid is used for by now (`launch.sweep`).
"""

import argparse
import contextlib
import ctypes
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"
LIBC = ctypes.CDLL(None, use_errno=True) if LINUX else None


def make_home(prefix: str) -> tuple[Path, int]:
    """Make our temporary folder and hold its lock; the lock appears only once it is held."""
    home = Path(tempfile.mkdtemp(prefix=prefix))
    fd = os.open(home / "lock.new", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    (home / "lock.new").rename(home / "lock")
    return home, fd


def die_with_guard(guard_pid: int) -> None:
    """In the child, before exec: end with the guard even when the guard gets SIGKILL."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != guard_pid:
        os._exit(1)


def start(command: list[str], home: Path) -> subprocess.Popen:
    """Start CMD in its own session, told where the temporary folder is."""
    guard_pid = os.getpid()
    return subprocess.Popen(
        [part.replace("{home}", str(home)) for part in command],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(home)},
        start_new_session=True,
        preexec_fn=(lambda: die_with_guard(guard_pid)) if LINUX else None,
    )


def children() -> list[int]:
    """Return the pids whose parent we are (Linux; re-parented orphans included)."""
    found = []
    for entry in Path("/proc").iterdir() if LINUX else ():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
        if parent == os.getpid():
            found.append(int(entry.name))
    return found


def reap() -> None:
    """Collect every ended child, orphans that came to us included."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def kill_all(child: subprocess.Popen, limit_s: float = 30.0) -> None:
    """SIGKILL the whole tree. Grandchildren come to us as their parents die, so we repeat."""
    end = time.monotonic() + limit_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    while time.monotonic() < end:
        reap()
        pids = children()
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def watch(child: subprocess.Popen, signals_fd: int) -> int:
    """Wait until the caller, a signal or the child ends this; return our exit code."""
    sources = [signals_fd, 0]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if 0 in ready:
            if os.read(0, 1) != b"d":
                return 0
            sources.remove(0)
        if signals_fd in ready:
            arrived = set(os.read(signals_fd, 64))
            if arrived & {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
                return 0
            if child.poll() is not None:
                return 1
            reap_orphans(child)


def reap_orphans(child: subprocess.Popen) -> None:
    """Collect ended orphans without taking the exit status of CMD from its Popen object."""
    for pid in children():
        if pid != child.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def main(argv: list[str]) -> int:
    """Run CMD under guard; return 0 when we were told to end, 1 when CMD ended by itself."""
    parser = argparse.ArgumentParser(prog="guard")
    parser.add_argument("--prefix", default="suc-guard-", help="name prefix of the folder")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args(argv)

    # Signals arrive as bytes on a pipe, so that one select() watches everything.
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    if LINUX and LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")

    home, _lock = make_home(args.prefix)
    child = None
    try:
        child = start(args.command, home)
        # CMD alone reports on stdout; its reader must see EOF when CMD ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return watch(child, reader)
    finally:
        if child is not None:
            kill_all(child)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
