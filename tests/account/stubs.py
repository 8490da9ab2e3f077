"""boto3 clients whose answers are queued with botocore's Stubber; an unexpected call is an error."""

from typing import Any

import boto3
from botocore.config import Config
from botocore.stub import Stubber

IDENTITY = {"Account": "123456789012", "UserId": "AIDAEXAMPLE", "Arn": "arn:aws:iam::123456789012:user/u"}


class Stubs:
    """`stubs("sts").add_response(...)` queues an answer, `stubs.client` is the factory of clients."""

    def __init__(self, region: str = "us-east-1"):
        self._region = region
        self._made: dict[str, tuple[Any, Stubber]] = {}

    def __call__(self, service: str) -> Stubber:
        if service not in self._made:
            client = boto3.client(
                service,
                region_name=self._region,
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
                config=Config(retries={"total_max_attempts": 1}),
            )
            stubber = Stubber(client)
            stubber.activate()
            self._made[service] = client, stubber
        return self._made[service][1]

    def client(self, service: str) -> Any:
        self(service)
        return self._made[service][0]

    def known(self) -> "Stubs":
        """Answer who we are."""
        self("sts").add_response("get_caller_identity", IDENTITY)
        return self

    def all_asked(self) -> None:
        for _, stubber in self._made.values():
            stubber.assert_no_pending_responses()
