"""cdk-nag and cfn-lint: clean, or acknowledged beside the reason in `stacks/`; and both really ran."""

import json
from pathlib import Path

import pytest
from aws_cdk import aws_sqs as sqs

from runner.names import stack_name
from stacks.assembly import lab_app
from tests.stacks.synthesis import Assembly, judge


def test_cdk_nag_finds_nothing(study: Assembly, rehearsal: Assembly) -> None:
    assert study.nag == ()
    assert rehearsal.nag == ()


def test_cdk_nag_really_runs(tmp_path: Path) -> None:
    app = lab_app("study-1", outdir=str(tmp_path))
    sqs.Queue(app.node.find_child(stack_name("study-1")), "Planted")
    planted = judge(app, stack_name("study-1"), tmp_path)
    assert set(planted.nag) == {
        "AwsSolutions-SQS3 at SucStudy1/Planted/Resource",
        "AwsSolutions-SQS4 at SucStudy1/Planted/Resource",
    }


# cfn-lint's import alone takes some four seconds.
@pytest.mark.slow
def test_cfn_lint_finds_nothing_but_what_cdk_makes(study: Assembly, tmp_path: Path) -> None:
    template = study.folder / "SucStudy1.template.json"
    assert _lint(template) == []
    broken = json.loads(template.read_text())
    broken["Resources"]["ConventionalMapping6B1390D8"]["Properties"]["BatchSize"] = "one"
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    assert [found.split(":")[0] for found in _lint(tmp_path / "broken.json")] == ["E3012"]


def _lint(template: Path) -> list[str]:
    from cfnlint.api import ManualArgs, lint_file

    # W3005: CDK writes a DependsOn on the role that the reference to it already implies.
    config = ManualArgs(regions=["us-east-1"], ignore_checks=["W3005"])
    return [f"{match.rule.id}: {match.message}" for match in lint_file(template, config=config)]
