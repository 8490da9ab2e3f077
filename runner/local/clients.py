"""boto3 clients of the local cloud, untouched by whatever AWS configuration the user has."""

import os

import boto3
import botocore.session
from botocore.config import Config

from runner.local.ministack import REGION, ROOT


def make_client(
    endpoint: str, service: str, *, credentials: dict | None = None, read_timeout_s: int = 60
):
    """Return a client that sends each request exactly once (CASES D13) as root or `credentials`."""
    nowhere = (None, None, os.devnull, None)
    # A profile or config file of the user must neither redirect nor break the local cloud.
    core = botocore.session.Session(
        session_vars={
            "profile": (None, None, None, None),
            "config_file": nowhere,
            "credentials_file": nowhere,
        }
    )
    return boto3.Session(botocore_session=core, region_name=REGION, **(credentials or ROOT)).client(
        service,
        endpoint_url=endpoint,
        config=Config(
            connect_timeout=5,
            read_timeout=read_timeout_s,
            retries={"mode": "standard", "total_max_attempts": 1},
            max_pool_connections=64,
            proxies={},
            s3={"addressing_style": "path"},
        ),
    )
