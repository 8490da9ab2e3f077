"""Time and memory of `judge` beside the floor: reading, hashing and JSON-parsing the same bytes.

`python -m tests.oracle.bench [TRIALS ...]` (default 100 1000 10000) makes packages of that many trials, a
quarter of each cell, and measures both in fresh processes of the same run. Target: at most 3 times the
floor, linear, flat memory.

Two ratios, because of what a process costs before its first line. The first counts from that line on: what
each side imports beyond the json and pathlib that both need, and its work. "With start" counts the whole
process as a watch would, the interpreter's start in both. The first round does not count, so that neither
pays for compiling a module or for a cold disk; a judge without compiled modules pays that once more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.oracle.builder import control, package_with, treatment

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = 30
FLOOR = """
import hashlib, json, pathlib, sys
root = pathlib.Path(sys.argv[1])
for entry in json.loads((root / "index.json").read_bytes())["files"]:
    data = (root / entry["path"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == entry["sha256"]
    if entry["path"].endswith(".jsonl"):
        for line in data.splitlines():
            json.loads(line)
    elif entry["path"].endswith(".json"):
        json.loads(data)
"""
JUDGE = """
import contextlib, os, sys
from oracle.cli import main
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    assert main(["judge", sys.argv[1]]) == 1
"""
# VmHWM is the peak of this program alone; getrusage would also count the process that started it.
MEASURE = """
import json, pathlib, re, resource, sys, time
code = compile(sys.argv.pop(1), "measured", "exec")
started = time.perf_counter()
exec(code, {})
wall, usage = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
status = pathlib.Path("/proc/self/status").read_text()
print(json.dumps([wall, usage.ru_utime + usage.ru_stime, int(re.search(r"VmHWM:\\s+(\\d+)", status)[1])]))
"""


def watched(trial):
    """The trial as it is really seen: half a minute of samples, the last of them the settle window."""
    quiet = trial.queues_jsonl
    trial.queues_jsonl = lambda: [
        {**line, "at_ms": line["at_ms"] - 1_000 * (SAMPLES - second)}
        for second in range(SAMPLES)
        for line in quiet(source=int(second < SAMPLES // 2))[:2]
    ]
    return trial


def make(trials: int, parent: Path) -> Path:
    """A package of that many trials, the four cells in turn."""
    cells = [(story, variant) for story in (control, treatment) for variant in ("conventional", "durable")]
    stories = [
        lambda p, n=n, cell=cells[n % 4]: watched(cell[0](p, cell[1], trial_id=f"t{n:05d}"))
        for n in range(trials)
    ]
    return package_with(*stories).write(parent)


def measure(code: str, package: str, compiled: str) -> tuple[float, ...]:
    """Seconds by the wall and the CPU, MiB at the peak, of a fresh process; both seconds with its start."""
    # What the environment says about compiled modules must not decide the figures.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    started, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, code, package],
        cwd=ROOT,
        env={**environment, "PYTHONPYCACHEPREFIX": compiled},
        capture_output=True,
        text=True,
        check=True,
    )
    whole, after = time.perf_counter() - started, os.times()
    cpu_whole = after.children_user + after.children_system - before.children_user - before.children_system
    wall, cpu, peak = json.loads(done.stdout)
    return wall, cpu, peak / 1024, whole, cpu_whole


def best(codes: tuple[str, ...], package: str, compiled: str) -> list[tuple[float, ...]]:
    """For each code the least of each figure in five runs, in turns: other work on the machine only adds."""
    rounds = [[measure(code, package, compiled) for code in codes] for _ in range(6)]
    return [tuple(map(min, zip(*runs, strict=True))) for runs in zip(*rounds[1:], strict=True)]


def main(sizes: list[int]) -> None:
    print("trials     MiB | floor s (cpu)  peak MiB | judge s (cpu)  peak MiB | ratio  cpu | with start  cpu")
    for trials in sizes:
        with tempfile.TemporaryDirectory() as folder:
            package = make(trials, Path(folder))
            size = sum(path.stat().st_size for path in package.rglob("*") if path.is_file()) / 2**20
            floor, judge = best((FLOOR, JUDGE), str(package), f"{folder}/compiled")
        ratio = [ours / theirs for ours, theirs in zip(judge, floor, strict=True)]
        sides = (f"{side[0]:6.2f} ({side[1]:5.2f}) {side[2]:9.1f}" for side in (floor, judge))
        ratios = f"{ratio[0]:5.2f} {ratio[1]:4.2f} | {ratio[3]:10.2f} {ratio[4]:4.2f}"
        print(f"{trials:6d} {size:7.1f} | {' | '.join(sides)} | {ratios}", flush=True)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [100, 1_000, 10_000])
