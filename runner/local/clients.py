"""boto3 clients of the local cloud, untouched by whatever AWS configuration the user has."""

import os

import boto3
import botocore.session
from botocore.config import Config

from runner.local.ministack import REGION, ROOT

# A repeat would be a second invocation, or a second message.
ONCE = ("lambda", "sqs")
# The queues deny aws:SecureTransport=false, and MiniStack takes the answer from this header, as
# behind a load balancer. Loopback needs no TLS, so whatever passes counts as secure transport.
SECURE_TRANSPORT = {"X-Forwarded-Proto": "https"}


def make_client(endpoint: str, service: str, *, credentials: dict | None = None, read_timeout_s: int = 60):
    """Return a client as root or with `credentials`.

    Each Lambda and SQS request goes out exactly once (CASES D13). The others may be repeated, as on AWS,
    because MiniStack answers 500 when two of its threads meet in one of its tables: ours are reads, writes
    that end the same done twice, transactions with a token, and stack changes whose repeat is refused.
    """
    nowhere = (None, None, os.devnull, None)
    # A profile or config file of the user must neither redirect nor break the local cloud.
    core = botocore.session.Session(
        session_vars={
            "profile": (None, None, None, None),
            "config_file": nowhere,
            "credentials_file": nowhere,
        }
    )
    session = boto3.Session(botocore_session=core, region_name=REGION, **(credentials or ROOT))
    client = session.client(
        service,
        endpoint_url=endpoint,
        config=Config(
            connect_timeout=5,
            read_timeout=read_timeout_s,
            retries={"mode": "standard", "total_max_attempts": 1 if service in ONCE else 4},
            max_pool_connections=64,
            proxies={},
            s3={"addressing_style": "path"},
        ),
    )
    client.meta.events.register("before-send", _mark_secure)
    return client


def _mark_secure(request, **_):
    request.headers.update(SECURE_TRANSPORT)
