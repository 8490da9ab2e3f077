"""cdk-nag, cfn-lint and CDK's own check find nothing, or `stacks/` acknowledges it with a reason."""

import json
from pathlib import Path

import pytest
from aws_cdk import aws_sqs as sqs

from runner.names import Output, stack_name
from stacks.assembly import lab_app
from tests.stacks.synthesis import Assembly, judge


def test_cdk_nag_and_cdk_itself_find_nothing(study: Assembly, rehearsal: Assembly) -> None:
    assert study.findings == ()
    assert rehearsal.findings == ()


def test_cdk_nag_and_cdks_own_check_really_run(tmp_path: Path) -> None:
    app = lab_app("study-1", outdir=str(tmp_path), validate=True)
    stack = app.node.find_child(stack_name("study-1"))
    sqs.Queue(stack, "Planted")
    stack.node.find_child("Provider").function.add_environment("X", "a name too short for Lambda")
    planted = judge(app, stack_name("study-1"), tmp_path)
    assert set(planted.findings) == {
        "AwsSolutions-SQS3 at SucStudy1/Planted/Resource",
        "AwsSolutions-SQS4 at SucStudy1/Planted/Resource",
        "F3002 at SucStudy1/Provider/Function/Resource",
    }


# cfn-lint's import alone takes some four seconds.
@pytest.mark.slow
def test_cfn_lint_finds_nothing_but_what_cdk_makes(study: Assembly, tmp_path: Path) -> None:
    template = study.folder / "SucStudy1.template.json"
    assert _lint(template) == []
    broken = json.loads(template.read_text())
    broken["Resources"][study.output_id(Output.PROVIDER_FUNCTION)]["Properties"]["Timeout"] = "soon"
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    assert [found.split(":")[0] for found in _lint(tmp_path / "broken.json")] == ["E3012"]


def _lint(template: Path) -> list[str]:
    from cfnlint.api import ManualArgs, lint_file

    # W3005: CDK writes a DependsOn on the role that the reference to it already implies.
    config = ManualArgs(regions=["us-east-1"], ignore_checks=["W3005"])
    return [f"{match.rule.id}: {match.message}" for match in lint_file(template, config=config)]
