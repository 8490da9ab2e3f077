"""Where an audit looks: which kind an ARN is of, which types and assets a template names."""

import json

import pytest

from runner.audit.kinds import CARRIED, KINDS
from runner.audit.passes import Scope
from runner.audit.tags import kind_of
from runner.targets.accounts import Account

HERE = "us-east-1:123456789012"
STREAM = f"arn:aws:dynamodb:{HERE}:table/S-Journal/stream/2026-11-29T00:00:00.000"


@pytest.mark.parametrize(
    ("arn", "type_", "name"),
    [
        (f"arn:aws:dynamodb:{HERE}:table/S-Ledger", "AWS::DynamoDB::Table", "S-Ledger"),
        (STREAM, "AWS::DynamoDB::Stream", STREAM),
        (f"arn:aws:sqs:{HERE}:S-Queue.fifo", "AWS::SQS::Queue", "S-Queue.fifo"),
        (f"arn:aws:lambda:{HERE}:function:S-Fn", "AWS::Lambda::Function", "S-Fn"),
        (f"arn:aws:lambda:{HERE}:function:S-Fn:3", "AWS::Lambda::Version", "S-Fn:3"),
        (f"arn:aws:lambda:{HERE}:function:S-Fn:live", "AWS::Lambda::Alias", "S-Fn:live"),
        (f"arn:aws:lambda:{HERE}:layer:S-deps:2", "AWS::Lambda::LayerVersion", "S-deps:2"),
        (f"arn:aws:lambda:{HERE}:event-source-mapping:u-1", "AWS::Lambda::EventSourceMapping", "u-1"),
        (f"arn:aws:logs:{HERE}:log-group:/aws/lambda/S-Fn", "AWS::Logs::LogGroup", "/aws/lambda/S-Fn"),
        (f"arn:aws:logs:{HERE}:log-group:S-provider:*", "AWS::Logs::LogGroup", "S-provider"),
        ("arn:aws:iam::123456789012:role/path/S-Role", "AWS::IAM::Role", "S-Role"),
        (f"arn:aws:cloudformation:{HERE}:stack/S/0a1b", "AWS::CloudFormation::Stack", "S"),
    ],
)
def test_an_arn_names_its_kind(arn, type_, name):
    kind, found = kind_of(arn)
    assert (kind.type, found) == (type_, name)


@pytest.fixture
def account():
    return Account("aws", "aws", "us-east-1", "123456789012", "SucStudy1", "study-1", lambda _service: None)


def test_the_scope_is_every_type_and_asset_of_all_templates(account, tmp_path):
    bucket = {"Fn::Sub": "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"}
    deployed = {
        "Resources": {
            "F": {
                "Type": "AWS::Lambda::Function",
                "Properties": {"Code": {"S3Bucket": bucket, "S3Key": "f.zip"}},
            }
        }
    }
    layer = {"S3Bucket": bucket, "S3Key": "l.zip"}
    synthesised = {
        "Resources": {
            "L": {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": layer}},
            "N": {"Type": "AWS::SNS::Topic"},
        }
    }
    place = {"bucketName": bucket["Fn::Sub"], "objectKey": "template.json"}
    manifest = {"files": {"t": {"destinations": {"here": place}}}}
    (tmp_path / "SucStudy1.assets.json").write_text(json.dumps(manifest))
    scope = Scope.of(account, [deployed, synthesised], tmp_path)
    assert scope.types == {"AWS::Lambda::Function", "AWS::Lambda::LayerVersion", "AWS::SNS::Topic"}
    assert [name.split("/") for name in scope.assets] == [
        ["cdk-hnb659fds-assets-123456789012-us-east-1", key] for key in ("f.zip", "l.zip", "template.json")
    ]


def test_the_audit_knows_every_type_that_the_stack_has(assembly):
    template = json.loads((assembly / "SucStudy1Rehearsal.template.json").read_text())
    types = {resource["Type"] for resource in template["Resources"].values()}
    assert len(types) > 8
    assert types - KINDS.keys() - CARRIED.keys() == set()
