"""boto3 clients whose answers are queued with botocore's Stubber; an unexpected call is an error."""

from typing import Any, ClassVar

import boto3
from botocore.config import Config
from botocore.stub import Stubber

IDENTITY = {"Account": "123456789012", "UserId": "AIDAEXAMPLE", "Arn": "arn:aws:iam::123456789012:user/u"}


class Stubs:
    """`stubs("sts").add_response(...)` queues an answer, `stubs.client` is the factory of clients."""

    # Making a client costs more than everything else in these tests.
    _clients: ClassVar[dict[tuple[str, str], Any]] = {}
    _active: ClassVar[dict[tuple[str, str], Stubber]] = {}

    def __init__(self, region: str = "us-east-1"):
        self._region = region
        self._made: dict[str, Stubber] = {}

    def __call__(self, service: str) -> Stubber:
        if service not in self._made:
            key = service, self._region
            if key not in self._clients:
                self._clients[key] = boto3.client(
                    service,
                    region_name=self._region,
                    aws_access_key_id="testing",
                    aws_secret_access_key="testing",
                    config=Config(retries={"total_max_attempts": 1}),
                )
            if key in self._active:
                self._active[key].deactivate()
            self._made[service] = self._active[key] = Stubber(self._clients[key])
            self._made[service].activate()
        return self._made[service]

    def client(self, service: str) -> Any:
        return self(service).client

    def known(self) -> "Stubs":
        """Answer who we are."""
        self("sts").add_response("get_caller_identity", IDENTITY)
        return self

    def all_asked(self) -> None:
        for stubber in self._made.values():
            stubber.assert_no_pending_responses()
