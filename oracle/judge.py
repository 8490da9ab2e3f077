"""Judges a package: integrity first, then its documents, then the probe, then one trial at a time.

Memory holds the index and one trial. A byte that is not the frozen one, wherever it is found, withdraws
everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from oracle import VERSION
from oracle.finding import Finding, Where, breach
from oracle.integrity import Inventory, read_checked, take_inventory
from oracle.package import Documents, decode_documents
from oracle.source import open_source
from oracle.trial import Trial, decode_trial
from oracle.verdict import (
    FAIL,
    HELD,
    INDETERMINATE,
    NOT_APPLICABLE,
    PASS,
    VALID,
    TrialResult,
    judge_trial,
    merge,
)


@dataclass(slots=True)
class Report:
    path: str
    identity: str = ""
    integrity: list[Finding] = field(default_factory=list)
    documents: Documents = field(default_factory=Documents)
    probe: TrialResult | None = None
    trials: list[TrialResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    files: dict[str, dict] = field(default_factory=dict)  # the index's entries by path

    @property
    def verdict(self) -> str:
        if self.integrity:
            return INDETERMINATE
        merged = merge(trial.verdict for trial in self.trials)
        return merged if merged == FAIL or not barred(self.findings) else INDETERMINATE

    def as_json(self) -> dict:
        run = self.documents.run or {}
        probe = self.probe and {
            "trial_id": self.probe.trial_id,
            "validity": self.probe.validity,
            "rules": self.probe.rules,
            "findings": [f.as_json() for f in self.probe.findings],
        }
        return {
            "format": "suc-verdict",
            "version": 1,
            "oracle": VERSION,
            "package": {"path": self.path, "id": self.identity},
            "protocol": run.get("protocol"),
            "target": run.get("target"),
            "grade": run.get("grade"),
            "run_id": run.get("run_id"),
            "verdict": self.verdict,
            "integrity": {
                "ok": not self.integrity,
                "findings": [found.as_json() for found in self.integrity],
            },
            "probe": probe,
            "trials": [trial.as_json() for trial in self.trials],
            "findings": [found.as_json() for found in self.findings],
        }

    def all_findings(self) -> list[Finding]:
        trials = [*([self.probe] if self.probe else []), *self.trials]
        return [*self.integrity, *self.findings, *(found for trial in trials for found in trial.findings)]


def barred(findings: list[Finding]) -> bool:
    """Whether the package itself lacks something that every pass needs."""
    return any(finding.severity != "note" for finding in findings)


def judge_path(path: Path, keep=None) -> Report:
    """Judge the package at a path; `keep(trial, result)` sees each decoded trial before it is let go."""
    source = open_source(path)
    try:
        return judge_source(source, str(path), keep)
    finally:
        source.close()


def judge_source(source, name: str, keep=None) -> Report:
    inventory = take_inventory(source)
    report = Report(name, inventory.identity, list(inventory.findings))
    if report.integrity:
        return report
    report.files = inventory.files
    reader = _Reader(source, inventory, report)
    top = {path: reader.read(path) for path in inventory.files if "/" not in path}
    report.documents = decode_documents(top)
    report.findings.extend(report.documents.findings)
    folders = inventory.trial_files()
    listed, probe_id = _listed(report, folders)
    if probe_id is not None:
        report.probe = reader.judge(probe_id, folders.pop(probe_id, []), keep)
        if report.probe.verdict == FAIL:  # its own trial.json does not call it a probe, so it was not spared
            report.trials.append(report.probe)
        if not barred(report.findings):  # what the package lacks its probe lacks too; once is enough
            report.findings.extend(_probe_findings(report.probe))
    for trial_id in listed:
        report.trials.append(reader.judge(trial_id, folders.pop(trial_id, []), keep))
    for paths in folders.values():  # bytes that nobody judges must still be the frozen ones
        for path in paths:
            reader.read(path)
    if report.integrity:
        report.trials, report.probe, report.findings = [], None, []
    return report


@dataclass(slots=True)
class _Reader:
    source: object
    inventory: Inventory
    report: Report

    def read(self, path: str) -> bytes:
        data, broken = read_checked(self.source, self.inventory.files[path])
        if broken:
            self.report.integrity.append(broken)
        return data

    def judge(self, trial_id: str, paths: list[str], keep) -> TrialResult:
        files = {path.rsplit("/", 1)[-1]: self.read(path) for path in paths}
        trial: Trial = decode_trial(trial_id, files, self.report.documents)
        result = judge_trial(trial, package_sound=not barred(self.report.findings))
        if keep is not None:
            keep(trial, result)
        return result


def _listed(report: Report, folders: dict[str, list[str]]) -> tuple[list[str], str | None]:
    """The trials to judge, in the run's order, and the probe. Without run.json every folder is a trial."""
    run = report.documents.run
    if run is None:
        return list(folders), None
    listed = report.documents.cells
    probe = run["probe"] if run["probe"] not in listed else None
    if probe is None or probe not in folders:
        report.findings.append(breach("K08", "there is no transport probe", Where("run.json", "/probe")))
        probe = None
    strays = [trial_id for trial_id in folders if trial_id not in listed and trial_id != run["probe"]]
    for trial_id in strays:
        report.findings.append(
            breach("K07", f"trial {trial_id} is not in run.json", Where(f"trials/{trial_id}"))
        )
    # What run.json does not list is judged as well: its violations count, its passes cannot.
    return [*listed, *strays], probe


def _probe_findings(probe: TrialResult):
    rules = [name for name, status in probe.rules.items() if status not in (HELD, NOT_APPLICABLE)]
    exposed = probe.rules.get("treatment_exposed") == HELD
    if probe.validity != VALID or rules or barred(probe.findings) or not exposed:
        yield breach(
            "K08", f"the transport probe is {probe.validity}", Where(f"trials/{probe.trial_id}"), rules=rules
        )


EXIT = {PASS: 0, FAIL: 1, INDETERMINATE: 2}
