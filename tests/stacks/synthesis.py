"""Synthesis in this process under cdk-nag and CDK's own check; the first costs some 5 s, later ones 0.6 s."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import app as entry

entry.point_jsii_at_our_node()

from aws_cdk import App, Validations  # noqa: E402
from cdk_nag import AwsSolutionsChecks  # noqa: E402

from runner.names import stack_name  # noqa: E402
from stacks.assembly import lab_app  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sys.executable


@dataclass(frozen=True)
class Assembly:
    """A synthesised cloud assembly: its folder, its one template and what the checks found."""

    folder: Path
    template: dict[str, Any]
    findings: tuple[str, ...]

    def resources(self, type_: str) -> dict[str, dict[str, Any]]:
        """Return the resources of one type by logical id."""
        return {k: r for k, r in self.template["Resources"].items() if r["Type"] == type_}

    def output_id(self, key: str) -> str:
        """Return the logical id that an output refers to."""
        return self.template["Outputs"][key]["Value"]["Ref"]

    def behind(self, key: str) -> dict[str, Any]:
        """Return the properties of the resource that an output refers to."""
        return self.template["Resources"][self.output_id(key)]["Properties"]


def synthesise(protocol: str, folder: Path) -> Assembly:
    """Synthesise one protocol's app into `folder`."""
    return judge(lab_app(protocol, outdir=str(folder), validate=True), stack_name(protocol), folder)


def judge(app: App, stack: str, folder: Path) -> Assembly:
    """Synthesise `app` under the checks; with findings the synth raises, but the files are there."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    try:
        app.synth()
    except RuntimeError as error:
        assert "ValidationFailed" in str(error)
    report = json.loads((folder / "validation-report.json").read_text())
    findings = tuple(
        f"{violation['ruleName']} at {construct['constructPath']}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    )
    return Assembly(folder, json.loads((folder / f"{stack}.template.json").read_text()), findings)
