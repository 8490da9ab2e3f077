"""Find what a cloud left behind: processes by the name of its temporary folder, or by descent."""

import time
from pathlib import Path


def processes_of(home: str) -> list[int]:
    """Return the pids whose command line or environment names the folder (Linux)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if home.encode() in told:
            found.append(int(entry.name))
    return found


def descendants(pid: int) -> list[int]:
    """Return the pids of a process and all processes that descend from it (Linux)."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
    family = {pid} & parents.keys()
    while fresh := {p for p, parent in parents.items() if parent in family} - family:
        family |= fresh
    return sorted(family)


def alive(pids: list[int]) -> list[int]:
    """Return the pids that still run; a zombie that init has yet to collect does not."""
    states = {}
    for pid in pids:
        try:
            states[pid] = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
    return [pid for pid, state in states.items() if state != "Z"]


def eventually(condition, limit_s: float = 60.0) -> bool:
    """Return whether the condition becomes true within the limit, which only a failing test waits for."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
