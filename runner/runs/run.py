"""One run: lease, probe, trials, freeze, judge. The order of a run's life, and its timing.

Every step is in the run's state log before it is taken (state.py), so a run that was killed can be
taken up by `resume` (resume.py), which builds the same Run from the log.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.clock import SystemClock, new_run_id
from runner.cost import estimate as cost
from runner.disk import sync_folder, write_through
from runner.errors import LabError
from runner.live.progress import Progress
from runner.names import RUN, VARIANTS
from runner.places import runs_dir
from runner.protocol import Cell, Protocol
from runner.records import Reads, canonical
from runner.runs.floor import protocol_floor_s
from runner.runs.freeze import Freezer, Package, environment, template_body
from runner.runs.lease import Lease
from runner.runs.oracle_command import judge
from runner.runs.preflight import preflight
from runner.runs.state import State, StateLog
from runner.targets.aws_errors import telling
from runner.targets.target import Lab
from runner.trials import probe as probing
from runner.trials.collect import collect
from runner.trials.driver import TrialDriver
from runner.trials.trial import Trial


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
    stage: str = RUN
    # What the stage stands on: the package before it, the registration, the expected cost.
    grounds: dict[str, Any] = field(default_factory=dict)
    # Each time another process took the run up: when, and after which state.
    resumed: list[dict[str, Any]] = field(default_factory=list)
    log: StateLog | None = None

    @property
    def folder(self) -> Path:
        """This run's own folder; a run id is never used twice."""
        return self.runs_dir / self.run_id

    def execute(self) -> tuple[Package, dict[str, Any]]:
        """Probe, run the trials, freeze, judge; return the package and the oracle's verdict.

        Raises LabError when the run cannot go on. Before anything was opened that is a refusal;
        afterwards the run stays unfinished, for `resume` to close.
        """
        # A first look before anything is written; the second, under the lease, is the one that counts.
        preflight(self.lab, self.protocol)
        self.started_at_ms = self.clock.now_ms()
        self.folder.mkdir(parents=True)
        write_through(self.folder / "protocol.toml", self.protocol.raw)
        sync_folder(self.runs_dir)
        self.log = StateLog(self.folder, self.clock.now_ms)
        self.log.write(State.CREATED, **self._facts())
        lease = self.lease()
        try:
            self._begin(lease)
            with self.timed("probe"):
                released = self._probe()
            with self.timed("trials"):
                if released:
                    self._run_trials()
            return self.finish()
        finally:
            lease.release()

    def _begin(self, lease: Lease) -> None:
        """Take the stack and see that it is fit; what is wrong with it refuses the run."""
        try:
            with telling("looking at the stack before the run"):
                self.log.write(State.LEASING)
                lease.take()
                self.log.write(State.LEASED)
                preflight(self.lab, self.protocol)
                with self.timed("probe"):
                    self._warm()
        except LabError as error:
            self.log.write(State.REFUSED, reason=error.subject)
            raise

    def finish(self) -> tuple[Package, dict[str, Any]]:
        """Freeze everything that ran, and ask the oracle."""
        with self.timed("freeze"):
            package = self.freeze()
        with self.timed("judge"):
            verdict = self.judge(package)
        return package, verdict

    def judge(self, package: Package) -> dict[str, Any]:
        """Ask the oracle about the published package."""
        self.log.write(State.JUDGING, package=package.id)
        verdict = judge(package.path)
        self.log.write(State.JUDGED, verdict=verdict["verdict"])
        return verdict

    def conclude(self, result: dict[str, Any]) -> None:
        """Keep the result beside the package and end the run."""
        fresh = self.folder / "result.json.new"
        write_through(fresh, canonical(result))
        fresh.replace(self.folder / "result.json")
        self.log.write(State.ENDED)
        self.log.close()

    def lease(self) -> Lease:
        """Return this run's lease of its stack; losing it interrupts the run."""
        client = self.lab.client("dynamodb")
        return Lease(client, self.lab.journal_table, self.run_id, self.clock.now_ms, self._lease_lost)

    def _lease_lost(self) -> None:
        self.progress.say("another runner has taken this stack's lease: the run ends here")
        self.stop.set()

    def _facts(self) -> dict[str, Any]:
        """What `resume` and `runs` need to know of this run and cannot find elsewhere."""
        return {
            "run_id": self.run_id,
            "protocol": self.protocol.name,
            "protocol_sha256": self.protocol.sha256,
            "target": self.lab.target,
            "grade": self.lab.grade,
            "stack_id": self.lab.stack_id,
            "stage": self.stage,
            "grounds": self.grounds,
            "sequential": self.sequential,
            "cells": [{"scenario": c.scenario, "variant": c.variant} for c in self.cells],
            "started_at_ms": self.started_at_ms,
        }

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
            self.log.write,
        )

    def _warm(self) -> None:
        self.progress.say("warming every function, then the transport probe")
        self.log.write(State.WARMING)
        self.functions = probing.warm(self.lab, 1 if self.sequential else len(VARIANTS))
        self.log.write(State.WARMED, functions=self.functions)

    def _probe(self) -> bool:
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
            trial.queues = self.samples(trial_id)
            self.trials.append(trial)
            self.progress.started(trial)
            self.driver().run(trial)
            self.progress.ended(trial)

    def samples(self, trial_id: str) -> Reads:
        """Return the trial's queue samples, kept on disk because nobody can take them again."""
        return Reads(self.clock.now_ms, keep=self.folder / f"{trial_id}.queues.jsonl")

    def freeze(self) -> Package:
        """Collect and freeze everything that ran; nothing is left out."""
        self.progress.say("collecting evidence and freezing the package")
        self.log.write(State.COLLECTING)
        freezer = Freezer(self.folder)
        template = template_body(self.lab.client, self.lab.stack)
        freezer.add("protocol.toml", "protocol_source", self.protocol.raw)
        freezer.add("protocol.json", "protocol", canonical(self.protocol.as_json()))
        freezer.add("template.json", "template", canonical(template))
        env = environment(self.lab, self.functions, template, self.started_at_ms)
        freezer.add("environment.json", "environment", canonical(env))
        ran = sorted(self.trials, key=lambda t: (t.started_at_ms, t.trial_id))
        for trial in [self.probe, *ran] if self.probe else ran:
            freezer.add_trial(trial, self.protocol, self.lab, collect(self.lab, trial, self.clock.now_ms))
        freezer.add("run.json", "run", canonical(self._run_record(ran)))
        costs = cost.estimate(freezer.files(), self.protocol, self.lab.grade)
        freezer.add("cost.json", "cost", canonical(costs))
        self.log.write(State.FREEZING)
        package = freezer.publish(lambda identity: self.log.write(State.PUBLISHING, package=identity))
        self.log.write(State.FROZEN, package=package.id)
        return package

    def _run_record(self, ran: list[Trial]) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "protocol": self.protocol.name,
            "protocol_sha256": self.protocol.sha256,
            "target": self.lab.target,
            "grade": self.lab.grade,
            "stage": self.stage,
            **self.grounds,
            "sequential": self.sequential,
            "scenarios": sorted({cell.scenario for cell in self.cells}),
            "started_at_ms": self.started_at_ms,
            "ended_at_ms": self.clock.now_ms(),
            "probe": self.probe.trial_id if self.probe else None,
            "planned": [{"scenario": c.scenario, "variant": c.variant} for c in self.cells],
            "trials": [{"trial_id": t.trial_id, "scenario": t.scenario, "variant": t.variant} for t in ran],
            "resumed": self.resumed,
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
