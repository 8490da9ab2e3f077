"""The release function: reads its environment, then judges each record of the journal's stream."""

import functools
from typing import Any

from lambdas.release.controller import Controller, on_record
from lambdas.shared.aws import make_dynamodb_client
from lambdas.shared.barrier import BarrierTable
from lambdas.shared.journal import Journal
from lambdas.shared.ping import is_ping, pong
from lambdas.shared.settings import ReleaseSettings


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    controller, clients = _open_controller(ReleaseSettings.load())
    if is_ping(event):
        return pong(clients)
    decisions = [on_record(controller, record, context.aws_request_id) for record in event["Records"]]
    return {"decisions": [decision and str(decision) for decision in decisions]}


@functools.lru_cache(maxsize=1)
def _open_controller(settings: ReleaseSettings) -> tuple[Controller, dict[str, Any]]:
    client = make_dynamodb_client()
    controller = Controller(
        journal=Journal(client, settings.journal_table, "release"),
        barrier=BarrierTable(client, settings.barrier_table),
        deadline_ms=settings.deadline_ms,
    )
    return controller, {"dynamodb": client}
