"""The cells {at-least-once, at-most-once} x {retries, none} are different experiments (CASES D06).

A provider without any key commits on every call, and every answer comes after the deadline.
"""

import pytest
from aws_durable_execution_sdk_python import RetryableSerDesError, durable_execution
from aws_durable_execution_sdk_python.config import StepConfig, StepSemantics
from aws_durable_execution_sdk_python.execution import InvocationStatus
from aws_durable_execution_sdk_python.retries import RetryPresets
from aws_durable_execution_sdk_python.serdes import SerDes
from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestRunner

from lambdas.caller.durable import step_config
from lambdas.shared.settings import StepSettings

AT_LEAST_ONCE = StepSemantics.AT_LEAST_ONCE_PER_RETRY
AT_MOST_ONCE = StepSemantics.AT_MOST_ONCE_PER_RETRY


def run_cell(config, refund):
    def function(_, context):
        return context.step(refund, name="refund-attempt", config=config)

    with DurableFunctionTestRunner(
        durable_execution(function), poll_interval=0.02, execution_timeout=60
    ) as runner:
        return runner.run(input="{}").status


@pytest.mark.parametrize(
    ("config", "commits"),
    [
        pytest.param(None, 6, id="nothing said"),
        pytest.param(StepConfig(step_semantics=AT_MOST_ONCE), 6, id="at most once, default retries"),
        pytest.param(StepConfig(RetryPresets.none(), AT_MOST_ONCE), 1, id="at most once, no retry"),
        pytest.param(step_config(StepSettings("refund-attempt", 2, 60)), 2, id="study 1"),
        pytest.param(step_config(StepSettings("refund-attempt", 3, 60)), 3, id="three attempts"),
    ],
)
def test_d06_commits_when_every_answer_is_late(config, commits):
    ledger = []

    def refund(step):
        ledger.append(step.attempt)
        raise TimeoutError("answer after 5 s, deadline 3 s")

    assert run_cell(config, refund) is InvocationStatus.FAILED
    assert ledger == list(range(1, commits + 1))


class KilledOnce(SerDes):
    """Ends the first invocation after the step's body and before its checkpoint, as a killed sandbox does."""

    def __init__(self):
        self._killed = False

    def serialize(self, value, serdes_context):
        if not self._killed:
            self._killed = True
            raise RetryableSerDesError("killed")
        return value

    def deserialize(self, data, serdes_context):
        return data


@pytest.mark.slow  # the testing library waits five real seconds before it invokes again
def test_d06_d08_a_killed_sandbox_repeats_the_step_without_asking_or_counting():
    ledger = []

    def refund(step):
        ledger.append(step.attempt)
        return "SUCCEEDED"

    config = StepConfig(RetryPresets.none(), AT_LEAST_ONCE, KilledOnce())
    assert run_cell(config, refund) is InvocationStatus.SUCCEEDED
    # Two effects under one attempt number and a strategy that forbids retries.
    assert ledger == [1, 1]


def test_the_strategy_of_the_study_is_explicit():
    config = step_config(StepSettings("refund-attempt", 2, 60))
    assert config.step_semantics is AT_LEAST_ONCE
    first, second = (config.retry_strategy(ValueError(), made) for made in (1, 2))
    assert (first.should_retry, first.delay.seconds) == (True, 60)
    assert second.should_retry is False
