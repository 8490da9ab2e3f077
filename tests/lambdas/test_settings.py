"""Typed settings, and each handler's own ping."""

import json

import pytest
from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestRunner

from lambdas.caller import conventional, durable
from lambdas.provider import handler as provider
from lambdas.release import handler as release
from lambdas.shared.settings import (
    CallerSettings,
    ProviderSettings,
    ReleaseSettings,
    SettingsError,
    StepSettings,
)

COMPLETE = {
    "SUC_JOURNAL_TABLE": "journal",
    "SUC_LEDGER_TABLE": "ledger",
    "SUC_BARRIER_TABLE": "barrier",
    "SUC_PROVIDER_FUNCTION": "provider",
    "SUC_DEADLINE_MS": "3000",
    "SUC_HOLD_BUDGET_S": "20",
    "SUC_BARRIER_POLL_MS": "100",
    "SUC_STEP_NAME": "refund-attempt",
    "SUC_STEP_ATTEMPTS": "2",
    "SUC_STEP_RETRY_DELAY_S": "60",
}
NAMES = {
    CallerSettings: ["SUC_JOURNAL_TABLE", "SUC_PROVIDER_FUNCTION", "SUC_DEADLINE_MS"],
    StepSettings: ["SUC_STEP_NAME", "SUC_STEP_ATTEMPTS", "SUC_STEP_RETRY_DELAY_S"],
    ProviderSettings: [
        "SUC_JOURNAL_TABLE",
        "SUC_LEDGER_TABLE",
        "SUC_BARRIER_TABLE",
        "SUC_HOLD_BUDGET_S",
        "SUC_BARRIER_POLL_MS",
    ],
    ReleaseSettings: ["SUC_JOURNAL_TABLE", "SUC_BARRIER_TABLE", "SUC_DEADLINE_MS"],
}
NEEDED = [(settings, name) for settings, names in NAMES.items() for name in names]


def test_settings_are_typed():
    assert CallerSettings.load(COMPLETE) == CallerSettings("journal", "provider", 3000)
    assert StepSettings.load(COMPLETE) == StepSettings("refund-attempt", 2, 60)
    assert ProviderSettings.load(COMPLETE) == ProviderSettings("journal", "ledger", "barrier", 20, 100)
    assert ReleaseSettings.load(COMPLETE) == ReleaseSettings("journal", "barrier", 3000)


@pytest.mark.parametrize(("settings", "name"), NEEDED)
def test_each_reads_exactly_the_variables_that_it_is_granted(settings, name):
    own = {key: COMPLETE[key] for key in NAMES[settings]}
    settings.load(own)
    with pytest.raises(SettingsError, match=f"environment variable {name}: expected"):
        settings.load({key: value for key, value in own.items() if key != name})


@pytest.mark.parametrize("value", ["", " ", "3s", "3.0", "-3", "0", "+3", "٣", "³", "1_000"])
def test_a_malformed_number_is_named_with_what_was_found(value):
    with pytest.raises(SettingsError, match="SUC_DEADLINE_MS"):
        ReleaseSettings.load(COMPLETE | {"SUC_DEADLINE_MS": value})


@pytest.mark.parametrize(
    ("module", "clients"),
    [(conventional, {"dynamodb", "lambda"}), (provider, {"dynamodb"}), (release, {"dynamodb"})],
    ids=["conventional", "provider", "release"],
)
def test_a_ping_does_nothing_but_say_what_runs(monkeypatch, module, clients):
    for name, value in COMPLETE.items():
        monkeypatch.setenv(name, value)
    pong = module.handler({"ping": True}, None)
    assert pong["pong"] is True
    assert (pong["botocore"], pong["boto3"], pong["durable_sdk"]) == ("1.44.8", "1.44.8", "3.0.0")
    assert pong["powertools"] == "3.37.0"
    assert pong["python"].count(".") == 2
    assert set(pong["sdk_config"]) == clients
    for config in pong["sdk_config"].values():
        assert config["retries"]["mode"] == "standard"
        assert isinstance(config["retries"]["total_max_attempts"], int)
    if "lambda" in clients:
        assert pong["sdk_config"]["lambda"]["retries"]["total_max_attempts"] == 1


def test_the_durable_handler_answers_a_ping_as_an_execution(monkeypatch):
    for name, value in COMPLETE.items():
        monkeypatch.setenv(name, value)
    with DurableFunctionTestRunner(durable.handler, poll_interval=0.02) as runner:
        pong = json.loads(runner.run(input='{"ping": true}').result)
    assert {name: config["retries"]["total_max_attempts"] for name, config in pong["sdk_config"].items()} == {
        "dynamodb": 3,
        "lambda": 1,
        "lambda_checkpoints": 3,
    }


@pytest.mark.parametrize("module", [conventional, durable, provider, release])
def test_a_missing_variable_stops_the_handler_and_is_named(monkeypatch, module):
    for name in COMPLETE:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match="SUC_JOURNAL_TABLE"):
        module.handler({"ping": True}, None)
