"""The conventional caller: SQS owns the retry.

A timeout or an unknown outcome is raised again, so the message comes back after its visibility
timeout and, at the receive limit, goes to the dead-letter queue.
"""

from typing import Any

from lambdas.caller.attempt import run_attempt
from lambdas.caller.message import Delivery
from lambdas.caller.runtime import open_caller
from lambdas.shared.ping import is_ping, pong
from lambdas.shared.settings import CallerSettings


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    caller, clients = open_caller(CallerSettings.load())
    if is_ping(event):
        return pong(clients)
    delivery = Delivery.parse(event)
    reason = run_attempt(caller, delivery, delivery.receive_count, context.aws_request_id)
    return {"trial_id": delivery.trial_id, "reason": reason}
