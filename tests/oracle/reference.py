"""A second judge, written from FORMAT.md alone, as plainly as possible and without a line of oracle/.

It asks one question at a time, keeps no structure, and says only the verdict, the effects, the processing
and the knowledge of the one trial of a package. Slow and blunt on purpose: where it and the oracle
disagree, one of them is wrong.
"""

from __future__ import annotations

import hashlib
import json
import tomllib

from tests.oracle.reference_trial import Trial
from tests.oracle.reference_words import OUTPUTS, N, S, has, is_a, strict


class Reference:
    """One pass over the files; `wrong` collects the kinds of trouble, `invalid` the breaches of protocol."""

    def __init__(self, files: dict[str, bytes]):
        self.files, self.wrong, self.violations = files, set(), set()
        self.run = self.document("run.json")
        self.protocol = self.document("protocol.json")
        self.environment = self.document("environment.json")
        self.template = self.document("template.json")
        self.package()

    def document(self, path):
        data = self.files.get(path)
        if data is None or not data.endswith(b"\n") or data.count(b"\n") != 1:
            self.wrong.add(path)
            return {}
        found = strict(data[:-1])
        if found is None or not is_a(found[0], dict):
            self.wrong.add(path)
            return {}
        return found[0]

    def package(self):
        try:
            toml = tomllib.loads(self.files["protocol.toml"].decode())
            digest = hashlib.sha256(self.files["protocol.toml"]).hexdigest()
        except (KeyError, ValueError):
            toml, digest = None, None
        if json.dumps(toml, sort_keys=True) != json.dumps(self.protocol, sort_keys=True):
            self.wrong.add("protocol")
            self.protocol = {}
        outputs = self.environment.get("stack", {})
        self.outputs = (
            outputs.get("outputs", {}) if is_a(outputs, dict) and is_a(outputs.get("outputs"), dict) else {}
        )
        name = self.protocol.get("study", {}).get("name")
        named = [
            (self.run.get("protocol"), self.run.get("protocol_sha256")),
            (self.outputs.get("ProtocolName"), self.outputs.get("ProtocolSha256")),
        ]
        self.need(named == [(name, digest)] * 2, "named")
        targets = [(d.get("target"), d.get("grade")) for d in (self.run, self.environment)]
        allowed = [("local", "emulated"), ("aws", "aws"), ("aws", "emulated")]
        self.need(targets[0] == targets[1] and targets[0] in allowed, "target")
        self.need(is_a(self.template.get("Resources"), dict), "template")
        if not self.need(well_formed_package(self), "members"):
            self.outputs = {}  # half an environment says nothing about which tables are the stack's

    def need(self, condition, what):
        if not condition:
            self.wrong.add(what)
        return condition

    # -- the trial ---------------------------------------------------------------------------------
    def judge(self):
        trials = self.run.get("trials") if is_a(self.run.get("trials"), list) else []
        ids = [t.get("trial_id") for t in trials if is_a(t, dict)]
        ids = [name for name in ids if is_a(name, str)]
        if self.run.get("stage") != "probe":
            asked = [*(self.run.get("scenarios") or []), *(self.run.get("planned") or [])]
            ran = [t for t in trials if is_a(t, dict)]
            for what in asked:
                cell = what if is_a(what, dict) else {"scenario": what}
                self.need(any(cell.items() <= t.items() for t in ran), "K06")
        folders = {path.split("/")[1] for path in self.files if path.startswith("trials/")}
        probe = self.run.get("probe") if is_a(self.run.get("probe"), str) else None
        self.need(
            len(ids) == 1 and folders == {*ids, probe} and probe not in ids and probe in folders, "folders"
        )
        (trial_id,) = [name for name in folders if name != "probe-1"]
        listed = next((t for t in trials if is_a(t, dict) and t.get("trial_id") == trial_id), {})
        probe_trouble = Trial(self, "probe-1", {}, True).trouble()
        trial = Trial(self, trial_id, listed, False)
        trouble = trial.trouble()
        if probe_trouble or self.wrong:
            trouble.add("package")
        return trial.verdict(trouble), len(trial.effects), trial.processing(), trial.knowledge()


def well_formed_package(package) -> bool:
    run, environment, protocol = package.run, package.environment, package.protocol
    return (
        has(run, dict.fromkeys(["run_id", "protocol", "protocol_sha256", "target", "grade", "stage"], S))
        and has(
            run, {"sequential": bool, "scenarios": list, "started_at_ms": N, "ended_at_ms": N, "trials": list}
        )
        and all(is_a(s, str) for s in run["scenarios"])
        and (run.get("probe", 0) is None or is_a(run.get("probe"), str))
        and all(has(t, {"trial_id": S, "scenario": S, "variant": S}) for t in run["trials"])
        and has(
            environment,
            {
                "target": S,
                "grade": S,
                "region": S,
                "account": S,
                "started_at_ms": N,
                "code": dict,
                "assets": list,
                "versions": dict,
                "functions": dict,
                "stack": dict,
            },
        )
        and has(environment["stack"], {"name": S, "status": S, "outputs": dict})
        and has(environment["stack"]["outputs"], dict.fromkeys(OUTPUTS, S))
        and {"commit", "dirty"} <= environment["code"].keys()
        and type(environment["code"]["commit"]) in (str, type(None))
        and type(environment["code"]["dirty"]) in (bool, type(None))
        and bool(protocol)
    )


def judge(files: dict[str, bytes]):
    """(verdict, effects, processing, knowledge) of the one trial of a package whose index is true."""
    return Reference(files).judge()
