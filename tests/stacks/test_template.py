"""What must hold for every resource: life, tags, names, logs, outputs, settings."""

import ast
from collections.abc import Iterator, Mapping

import pytest

from lambdas.shared.settings import CallerSettings, ProviderSettings, ReleaseSettings, StepSettings
from runner.names import PROJECT, Output
from runner.protocol import load
from tests.stacks.synthesis import ROOT, Assembly

FUNCTIONS = {
    Output.PROVIDER_FUNCTION: ("provider", "lambdas.provider.handler.handler", (ProviderSettings,)),
    Output.RELEASE_FUNCTION: ("release", "lambdas.release.handler.handler", (ReleaseSettings,)),
    Output.CONVENTIONAL_FUNCTION: ("conventional", "lambdas.caller.conventional.handler", (CallerSettings,)),
    Output.DURABLE_FUNCTION: ("durable", "lambdas.caller.durable.handler", (CallerSettings, StepSettings)),
}

# CloudFormation has no tags for these.
UNTAGGED = {
    "AWS::IAM::Policy",
    "AWS::Lambda::Alias",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Version",
    "AWS::SQS::QueuePolicy",
}

# Types that keep data or cost money after a stack that forgets to say so.
KEEPS_DATA = {"AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Logs::LogGroup"}


def test_the_stack_holds_these_resources_and_no_others(study: Assembly) -> None:
    count: dict[str, int] = {}
    for resource in study.template["Resources"].values():
        count[resource["Type"]] = count.get(resource["Type"], 0) + 1
    assert count == {
        "AWS::DynamoDB::Table": 3,
        "AWS::IAM::Policy": 1,
        "AWS::IAM::Role": 4,
        "AWS::Lambda::Alias": 1,
        "AWS::Lambda::EventSourceMapping": 3,
        "AWS::Lambda::Function": 4,
        "AWS::Lambda::LayerVersion": 1,
        "AWS::Lambda::Version": 1,
        "AWS::Logs::LogGroup": 4,
        "AWS::SQS::Queue": 5,
        "AWS::SQS::QueuePolicy": 5,
    }


def test_nothing_outlives_the_stack_but_what_goes_with_its_function(study: Assembly) -> None:
    for id_, resource in study.template["Resources"].items():
        policies = (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy"))
        if resource["Type"] == "AWS::Lambda::Version":
            # Kept on update, because executions are pinned to it; deleted with the function.
            assert policies == ("Retain", "Retain")
        elif resource["Type"] in KEEPS_DATA:
            assert policies == ("Delete", "Delete"), id_
        else:
            assert set(policies) <= {None, "Delete"}, id_


def test_everything_that_can_be_is_tagged_with_project_and_study(study: Assembly) -> None:
    expected = [{"Key": "project", "Value": PROJECT}, {"Key": "study", "Value": "study-1"}]
    untagged = set()
    for resource in study.template["Resources"].values():
        if "Tags" in resource["Properties"]:
            assert resource["Properties"]["Tags"] == expected
        else:
            untagged.add(resource["Type"])
    assert untagged == UNTAGGED


def test_every_name_is_generated_or_starts_with_the_stack_and_a_hyphen(study: Assembly) -> None:
    named = {}
    for resource in study.template["Resources"].values():
        # An alias and a policy live inside a function and a role; the rest would be listed by name.
        if resource["Type"] in ("AWS::Lambda::Alias", "AWS::IAM::Policy"):
            continue
        service = resource["Type"].rsplit("::", 1)[1].removesuffix("Version")
        for key in ("Name", f"{service}Name"):
            if isinstance(resource["Properties"].get(key), str):
                named[resource["Properties"][key]] = resource["Type"]
    assert named == {
        "SucStudy1-dependencies": "AWS::Lambda::LayerVersion",
        "SucStudy1-provider": "AWS::Logs::LogGroup",
        "SucStudy1-release": "AWS::Logs::LogGroup",
        "SucStudy1-conventional": "AWS::Logs::LogGroup",
        "SucStudy1-durable": "AWS::Logs::LogGroup",
    }


@pytest.mark.parametrize("key", FUNCTIONS)
def test_functions_run_python_3_13_on_arm64_with_the_one_layer(study: Assembly, key: str) -> None:
    function, (_, handler, _) = study.behind(key), FUNCTIONS[key]
    ((layer, _),) = study.resources("AWS::Lambda::LayerVersion").items()
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["Handler"] == handler
    assert function["Layers"] == [{"Ref": layer}]
    assert function["MemorySize"] == 1024
    assert "ReservedConcurrentExecutions" not in function


@pytest.mark.parametrize("key", FUNCTIONS)
def test_the_handler_named_in_the_template_exists(key: str) -> None:
    module, _, function = FUNCTIONS[key][1].rpartition(".")
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    assigned = {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets}
    assert function in defined | assigned


@pytest.mark.parametrize("key", FUNCTIONS)
def test_d29_each_function_logs_to_its_own_group_with_retention(study: Assembly, key: str) -> None:
    group = study.output_id(key.replace("Function", "LogGroup"))
    assert study.behind(key)["LoggingConfig"] == {"LogGroup": {"Ref": group}}
    assert study.template["Resources"][group]["Properties"]["RetentionInDays"] == 14


class Read(Mapping[str, str]):
    """An environment that remembers which variables were read."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values_, self.read = values, set[str]()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


@pytest.mark.parametrize("key", FUNCTIONS)
def test_each_function_is_given_exactly_the_settings_its_handler_reads(study: Assembly, key: str) -> None:
    name, _, settings = FUNCTIONS[key]
    variables = study.behind(key)["Environment"]["Variables"]
    environment = Read({k: v if isinstance(v, str) else v["Ref"] for k, v in variables.items()})
    for kind in settings:
        kind.load(environment)
    assert environment.read == {k for k in variables if k.startswith("SUC_")}
    assert variables["POWERTOOLS_SERVICE_NAME"] == name
    assert variables.keys() - environment.read == {"POWERTOOLS_SERVICE_NAME"}


def test_tables_are_keyed_by_trial_and_paid_per_request(study: Assembly) -> None:
    keys = {
        Output.LEDGER_TABLE: ["trial_id", "transaction_id"],
        Output.JOURNAL_TABLE: ["trial_id", "entry"],
        Output.BARRIER_TABLE: ["trial_id"],
    }
    for output, expected in keys.items():
        table = study.behind(output)
        assert [k["AttributeName"] for k in table["KeySchema"]] == expected
        assert {a["AttributeType"] for a in table["AttributeDefinitions"]} == {"S"}
        assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_outputs_are_those_the_runner_reads(study: Assembly) -> None:
    outputs = study.template["Outputs"]
    assert set(outputs) == set(Output.all())
    kinds = {"Table": "AWS::DynamoDB::Table", "Function": "AWS::Lambda::Function"}
    kinds |= {"QueueUrl": "AWS::SQS::Queue", "DlqUrl": "AWS::SQS::Queue", "LogGroup": "AWS::Logs::LogGroup"}
    for key in outputs:
        for suffix, type_ in kinds.items():
            if key.endswith(suffix):
                assert study.template["Resources"][study.output_id(key)]["Type"] == type_, key
    assert outputs[Output.DURABLE_ALIAS]["Value"] == "live"
    assert outputs[Output.PROTOCOL_NAME]["Value"] == "study-1"
    assert outputs[Output.PROTOCOL_SHA256]["Value"] == load("study-1").sha256


def test_no_analytics_resource(study: Assembly) -> None:
    assert "AWS::CDK::Metadata" not in {r["Type"] for r in study.template["Resources"].values()}
