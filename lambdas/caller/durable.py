"""The durable caller: the durable step owns the retry.

    delivery -> durable execution -> step (attempt 1) raises -> suspended for the delay -> step (attempt 2)

The step's body is the same `run_attempt` as in the conventional caller. Everything outside the step
runs again on each replay, so it only reads. Nothing here may catch BaseException around the step:
suspension travels as one. A failed step leaves the handler as it is, so the execution fails and the
message returns to its queue.
"""

import functools
from collections.abc import Callable
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, StepContext, durable_execution
from aws_durable_execution_sdk_python.config import Duration, StepConfig, StepSemantics
from aws_durable_execution_sdk_python.retries import RetryDecision

from lambdas.caller.attempt import Caller, run_attempt
from lambdas.caller.message import Delivery
from lambdas.caller.runtime import open_caller
from lambdas.shared.aws import make_client
from lambdas.shared.ping import is_ping, pong
from lambdas.shared.settings import CallerSettings, StepSettings


def handler(event: Any, context: Any) -> Any:
    return _open_durable(CallerSettings.load(), StepSettings.load())(event, context)


@functools.lru_cache(maxsize=1)
def _open_durable(settings: CallerSettings, step: StepSettings) -> Callable[[Any, Any], Any]:
    caller, clients = open_caller(settings)
    # The SDK's own default client names no retry mode; a repeat of a checkpoint is safe, its token guards it.
    checkpoints = make_client("lambda", connect_timeout_s=5, read_timeout_s=50, total_max_attempts=3)
    named = {**clients, "lambda_checkpoints": checkpoints}
    return durable_execution(functools.partial(run, caller, step, named), boto3_client=checkpoints)


def run(
    caller: Caller, step: StepSettings, clients: dict[str, Any], event: Any, context: DurableContext
) -> Any:
    """The durable function itself: one step, explicit in everything that decides how often it runs."""
    if is_ping(event):
        return pong(clients)
    delivery = Delivery.parse(event)

    def refund(step_context: StepContext) -> str:
        request_id = context.lambda_context.aws_request_id
        return run_attempt(caller, delivery, step_context.attempt, request_id)

    reason = context.step(refund, name=step.name, config=step_config(step))
    return {"trial_id": delivery.trial_id, "reason": reason}


def step_config(step: StepSettings) -> StepConfig:
    """The strategy is a plain function: a fixed delay and no jitter, so that the protocol's timing holds."""

    def strategy(_: Exception, attempts_made: int) -> RetryDecision:
        if attempts_made < step.attempts:
            return RetryDecision.retry(Duration.from_seconds(step.retry_delay_s))
        return RetryDecision.no_retry()

    return StepConfig(retry_strategy=strategy, step_semantics=StepSemantics.AT_LEAST_ONCE_PER_RETRY)
