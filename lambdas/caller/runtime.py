"""What both callers need from the environment, made on first use inside a handler."""

import functools
from typing import Any

from lambdas.caller.attempt import Caller
from lambdas.shared.aws import make_dynamodb_client
from lambdas.shared.journal import Journal
from lambdas.shared.provider_client import ProviderClient, make_provider_client
from lambdas.shared.settings import CallerSettings


@functools.lru_cache(maxsize=1)
def open_caller(settings: CallerSettings) -> tuple[Caller, dict[str, Any]]:
    """The caller and its clients by name, kept for as long as the settings stay the same."""
    clients = {"dynamodb": make_dynamodb_client(), "lambda": make_provider_client(settings.deadline_ms)}
    provider = ProviderClient(clients["lambda"], settings.provider_function, settings.deadline_ms)
    journal = Journal(clients["dynamodb"], settings.journal_table, "caller")
    return Caller(journal, provider.refund, settings.deadline_ms), clients
