"""Time and memory of `judge` beside the floor: reading, hashing and JSON-parsing the same bytes.

`python -m tests.oracle.bench [TRIALS ...]` (default 100 1000 10000) makes packages of that many trials, a
quarter of each cell, and measures both in fresh processes of the same run. Target: at most 3 times the
floor, linear, flat memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
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


def measure(code: str, *arguments: str) -> tuple[float, float, float]:
    """Seconds by the wall and by the CPU, and MiB at the peak, of a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    wall, cpu, peak = json.loads(done.stdout)
    return wall, cpu, peak / 1024


def best(code: str, package: str) -> tuple[float, ...]:
    """The least of each figure in five runs: other work on the machine only adds."""
    return tuple(map(min, zip(*(measure(code, package) for _ in range(5)), strict=True)))


def main(sizes: list[int]) -> None:
    print("trials     MiB | floor s (cpu)  peak MiB | judge s (cpu)  peak MiB | judge/floor wall  cpu")
    for trials in sizes:
        with tempfile.TemporaryDirectory() as folder:
            package = make(trials, Path(folder))
            size = sum(path.stat().st_size for path in package.rglob("*") if path.is_file()) / 2**20
            measure(FLOOR, str(package))  # the first reader fills the page cache for both
            floor, judge = (best(code, str(package)) for code in (FLOOR, JUDGE))
        ratios = judge[0] / floor[0], judge[1] / floor[1]
        sides = (f"{wall:6.2f} ({cpu:5.2f}) {peak:9.1f}" for wall, cpu, peak in (floor, judge))
        print(f"{trials:6d} {size:7.1f} | {' | '.join(sides)} | {ratios[0]:16.2f} {ratios[1]:4.2f}")


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [100, 1_000, 10_000])
