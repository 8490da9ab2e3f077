"""The provider function: reads its environment, then serves one refund request."""

import functools
from typing import Any

from lambdas.provider.refunds import Provider, serve
from lambdas.shared.aws import make_dynamodb_client
from lambdas.shared.barrier import BarrierTable
from lambdas.shared.journal import Journal
from lambdas.shared.ping import is_ping, pong
from lambdas.shared.settings import ProviderSettings


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    provider, clients = _open_provider(ProviderSettings.load())
    if is_ping(event):
        return pong(clients)
    return serve(provider, event, context.aws_request_id)


@functools.lru_cache(maxsize=1)
def _open_provider(settings: ProviderSettings) -> tuple[Provider, dict[str, Any]]:
    client = make_dynamodb_client()
    provider = Provider(
        journal=Journal(client, settings.journal_table, "provider"),
        barrier=BarrierTable(client, settings.barrier_table),
        ledger_table=settings.ledger_table,
        hold_budget_s=settings.hold_budget_s,
        barrier_poll_ms=settings.barrier_poll_ms,
    )
    return provider, {"dynamodb": client}
