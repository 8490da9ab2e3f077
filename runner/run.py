"""One run: probe, trials, freeze, judge. The order of a run's life, and its timing."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner import probe as probing
from runner.clock import SystemClock, new_run_id
from runner.collect import collect
from runner.errors import LabError
from runner.floor import protocol_floor_s
from runner.freeze import Freezer, Package, environment, template_body
from runner.names import VARIANTS, Output
from runner.progress import Progress
from runner.protocol import Cell, Protocol
from runner.records import canonical
from runner.target import Lab
from runner.trial import Trial, TrialDriver

PROJECT_ROOT = Path(__file__).resolve().parent.parent
JUDGE_LIMIT_S = 300


def runs_dir() -> Path:
    """Return where runs are kept: `runs/`, ignored by git; SUC_RUNS_DIR moves it (the tests do)."""
    return Path(os.environ.get("SUC_RUNS_DIR") or PROJECT_ROOT / "runs")


@dataclass
class Run:
    """A run in progress: what was asked, on what, and what has been done."""

    lab: Lab
    protocol: Protocol
    cells: tuple[Cell, ...]
    sequential: bool
    progress: Progress
    clock: SystemClock
    stop: threading.Event
    run_id: str = field(default_factory=new_run_id)
    runs_dir: Path = field(default_factory=runs_dir)
    trials: list[Trial] = field(default_factory=list)
    timing_s: dict[str, float] = field(default_factory=dict)
    started_at_ms: int = 0
    probe: Trial | None = None
    functions: dict[str, Any] = field(default_factory=dict)

    def execute(self) -> tuple[Package, dict[str, Any]]:
        """Probe, run the trials, freeze, judge; return the package and the oracle's verdict.

        Raises LabError when the run cannot go on; whatever was already in motion is frozen.
        """
        self.started_at_ms = self.clock.now_ms()
        preflight(self.lab, self.protocol)
        # A folder of its own per run; a run id is never used twice.
        (self.runs_dir / self.run_id).mkdir(parents=True)
        with self.timed("probe"):
            released = self._probe()
        with self.timed("trials"):
            if released:
                self._run_trials()
        with self.timed("freeze"):
            package = self.freeze()
        with self.timed("judge"):
            verdict = judge(package.path)
        return package, verdict

    def timed(self, name: str):
        """Time a phase on the monotonic clock into `timing_s[name]`."""
        return Timed(self.timing_s, name, self.clock.monotonic)

    def driver(self) -> TrialDriver:
        """Return a driver for this run's trials."""
        return TrialDriver(
            self.lab,
            self.protocol,
            self.clock,
            self.stop.is_set,
            self.progress.note,
            self.progress.waiting,
        )

    def _probe(self) -> bool:
        self.progress.say("warming every function, then the transport probe")
        self.functions = probing.warm(self.lab, 1 if self.sequential else len(VARIANTS))
        self.probe = probing.new_probe(self.run_id)
        released = probing.run_probe(self.probe, self.lab, self.protocol, self.clock, self.driver())
        if not released:
            self.progress.say("the probe's provider was never released: no trial is run on this target")
        # A failed invocation costs the environment on the local cloud, so warm that one again.
        probing.warm(self.lab, 1, (self.probe.variant,))
        return released

    def _run_trials(self) -> None:
        numbered = [(cell, f"{self.run_id}-t{number}") for number, cell in enumerate(self.cells, start=1)]
        if self.sequential:
            self._run_in_turn(numbered)
            return
        # Trials of one variant share a queue and run in turn; variants run side by side.
        with ThreadPoolExecutor(len(VARIANTS)) as pool:
            lanes = [[(c, t) for c, t in numbered if c.variant == variant] for variant in VARIANTS]
            for done in [pool.submit(self._run_in_turn, lane) for lane in lanes if lane]:
                done.result()

    def _run_in_turn(self, numbered: list[tuple[Cell, str]]) -> None:
        for cell, trial_id in numbered:
            if self.stop.is_set():
                return
            trial = Trial(trial_id, self.run_id, "trial", cell.scenario, cell.variant)
            self.trials.append(trial)
            self.progress.started(trial)
            self.driver().run(trial)
            self.progress.ended(trial)

    def freeze(self) -> Package:
        """Collect and freeze everything that ran; nothing is left out."""
        self.progress.say("collecting evidence and freezing the package")
        freezer = Freezer(self.runs_dir / self.run_id)
        template = template_body(self.lab)
        freezer.add("protocol.toml", "protocol_source", self.protocol.raw)
        freezer.add("protocol.json", "protocol", canonical(self.protocol.as_json()))
        freezer.add("template.json", "template", canonical(template))
        env = environment(self.lab, self.functions, template, self.started_at_ms)
        freezer.add("environment.json", "environment", canonical(env))
        ran = [self.probe, *sorted(self.trials, key=lambda t: (t.started_at_ms, t.trial_id))]
        for trial in ran:
            freezer.add_trial(trial, self.protocol, self.lab, collect(self.lab, trial, self.clock.now_ms))
        freezer.add("run.json", "run", canonical(self._run_record(ran)))
        return freezer.publish()

    def _run_record(self, ran: list[Trial]) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "protocol": self.protocol.name,
            "protocol_sha256": self.protocol.sha256,
            "target": self.lab.target,
            "grade": self.lab.grade,
            "stage": "run",
            "sequential": self.sequential,
            "scenarios": sorted({cell.scenario for cell in self.cells}),
            "started_at_ms": self.started_at_ms,
            "ended_at_ms": self.clock.now_ms(),
            "probe": self.probe.trial_id,
            "planned": [{"scenario": c.scenario, "variant": c.variant} for c in self.cells],
            "trials": [
                {"trial_id": t.trial_id, "scenario": t.scenario, "variant": t.variant}
                for t in ran
                if t.kind == "trial"
            ],
        }

    def floor_s(self) -> float:
        """The least time the protocol's own deadlines and delays need for this run."""
        return protocol_floor_s(self.protocol, self.cells, self.sequential)


@dataclass
class Timed:
    """Context manager that stores the seconds a phase took."""

    into: dict[str, float]
    name: str
    monotonic: Callable[[], float]
    began: float = 0.0

    def __enter__(self) -> None:
        self.began = self.monotonic()

    def __exit__(self, *_: object) -> None:
        self.into[self.name] = round(self.into.get(self.name, 0.0) + self.monotonic() - self.began, 3)


def preflight(lab: Lab, protocol: Protocol) -> None:
    """Refuse to start on a stack of another protocol or with messages left in its source queues."""
    deployed = lab.outputs[Output.PROTOCOL_SHA256]
    if deployed != protocol.sha256:
        raise LabError(
            f"stack {lab.stack} was deployed from another protocol file",
            expected=f"{protocol.name} with SHA-256 {protocol.sha256}",
            found=f"{lab.outputs[Output.PROTOCOL_NAME]} with SHA-256 {deployed}",
            next_step="deploy again, so that stack and protocol agree",
        )
    for variant in VARIANTS:
        attributes = lab.client("sqs").get_queue_attributes(
            QueueUrl=lab.queue_url(variant), AttributeNames=["All"]
        )["Attributes"]
        waiting = int(attributes.get("ApproximateNumberOfMessages", 0))
        in_flight = int(attributes.get("ApproximateNumberOfMessagesNotVisible", 0))
        if waiting or in_flight:
            raise LabError(
                f"the {variant} queue is not at rest, so a trial could meet another one's message",
                expected="no message waiting or in flight",
                found=f"{waiting} waiting, {in_flight} in flight",
                next_step="wait until the other run has ended, then run again",
            )


def judge(package: Path) -> dict[str, Any]:
    """Ask the oracle, as any reader would: as a command, over the package's bytes alone.

    Raises LabError when it gives no verdict (its exit codes 0, 1 and 2 are verdicts).
    """
    done = subprocess.run(
        [sys.executable, "-m", "oracle", "judge", str(package), "--json"],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        timeout=JUDGE_LIMIT_S,
        check=False,
    )
    try:
        # Python itself ends with 1 when it cannot start the oracle: only a document is a verdict.
        verdict = json.loads(done.stdout)
    except ValueError:
        verdict = None
    if done.returncode not in (0, 1, 2) or verdict is None:
        raise LabError(
            "the oracle gave no verdict",
            expected="a verdict and exit code 0, 1 or 2",
            found=f"{done.returncode}: {done.stderr.strip()[-1000:]}",
            next_step=f"run `python -m oracle judge {package}`",
        )
    return verdict
