"""The answer to {"ping": true}: proves that a function is warm and says what it really runs with."""

import platform
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import botocore
from aws_lambda_powertools.shared.version import VERSION as POWERTOOLS_VERSION

from lambdas.shared.aws import effective_config

_VERSION = re.compile(r"""^__version__ = ["'](.+)["']$""", re.MULTILINE)


def is_ping(event: object) -> bool:
    return event == {"ping": True}


def pong(clients: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pong": True,
        "python": platform.python_version(),
        "botocore": botocore.__version__,
        "boto3": _version_on_path("boto3", "__init__.py"),
        "durable_sdk": _version_on_path("aws_durable_execution_sdk_python", "__about__.py"),
        "powertools": POWERTOOLS_VERSION,
        "sdk_config": {name: effective_config(client) for name, client in clients.items()},
    }


def _version_on_path(package: str, file: str) -> str:
    """The version that an import would take. Importing only to ask would cost 0.3 s of a cold start."""
    source = Path(find_spec(package).origin).with_name(file).read_text(encoding="utf-8")
    return _VERSION.search(source)[1]
