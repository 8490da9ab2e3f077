"""The answer to {"ping": true}: proves that a function is warm and says what it really runs with."""

import platform
from collections.abc import Mapping
from typing import Any

import botocore

from lambdas.shared.aws import effective_config


def is_ping(event: object) -> bool:
    return event == {"ping": True}


def pong(clients: Mapping[str, Any]) -> dict[str, Any]:
    """Versions come from the modules themselves: those in effect, not those on a label."""
    # Imported here, for a ping alone: only the durable caller needs the SDK and boto3 in its real work.
    import aws_durable_execution_sdk_python.__about__
    import aws_lambda_powertools.shared.version
    import boto3

    return {
        "pong": True,
        "python": platform.python_version(),
        "botocore": botocore.__version__,
        "boto3": boto3.__version__,
        "durable_sdk": aws_durable_execution_sdk_python.__about__.__version__,
        "powertools": aws_lambda_powertools.shared.version.VERSION,
        "sdk_config": {name: effective_config(client) for name, client in clients.items()},
    }
