"""An account on moto whose single operations can be made to answer otherwise."""

from collections.abc import Callable
from typing import Any

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError

from runner.audit.passes import Audit, Scope, audit
from runner.targets.accounts import Account

STACK, STUDY = "SucStudy1", "study-1"
TAGS = {"project": "serverless-under-constraints", "study": STUDY}


def error(operation: str, code: str, message: str = "said so") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def refusing(code: str) -> Callable[[str, dict[str, Any]], Any]:
    """An answer that is this error, whatever was asked."""

    def answer(operation: str, _request: dict[str, Any]) -> Any:
        raise error(operation, code)

    return answer


def _no_stack(operation: str, request: dict[str, Any]) -> Any:
    if "StackName" not in request:
        return {"Stacks": []}
    raise error(operation, "ValidationError", f"Stack with id {request['StackName']} does not exist")


# What moto serves only with packages that this project has no other use for: empty.
EMPTY = {
    "DescribeStacks": _no_stack,
    "GetResources": lambda *_: {"ResourceTagMappingList": [], "PaginationToken": ""},
    "ListEventSourceMappings": lambda *_: {"EventSourceMappings": []},
    "ListFunctions": lambda *_: {"Functions": []},
    "ListLayers": lambda *_: {"Layers": []},
}


class Bench:
    """Answers by operation; everything else goes to moto."""

    # Making a client costs more than everything else in these tests.
    clients: dict[str, Any] = {}

    def __init__(self, monkeypatch: Any):
        self.answers: dict[str, Callable[[str, dict[str, Any]], Any]] = dict(EMPTY)
        self.asked: list[str] = []
        self.slept: list[float] = []
        self.now_ms = 1_000_000
        self.on_sleep: Callable[[], None] = lambda: None
        original = BaseClient._make_api_call

        def call(client: Any, operation: str, request: dict[str, Any]) -> Any:
            self.asked.append(operation)
            answer = self.answers.get(operation)
            return answer(operation, request) if answer else original(client, operation, request)

        monkeypatch.setattr(BaseClient, "_make_api_call", call)

    def client(self, service: str) -> Any:
        if service not in self.clients:
            config = Config(account_id_endpoint_mode="disabled", retries={"total_max_attempts": 1})
            self.clients[service] = boto3.client(service, region_name="us-east-1", config=config)
        return self.clients[service]

    def account(self, stack: str = STACK) -> Account:
        return Account("aws", "emulated", "us-east-1", "123456789012", stack, STUDY, self.client)

    def audit(self, *types: str, assets: tuple[str, ...] = (), stack: str = STACK) -> Audit:
        def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.now_ms += int(seconds * 1000)
            self.on_sleep()

        scope = Scope(frozenset(types), assets)
        return audit(self.account(stack), scope, delay_s=120, now_ms=lambda: self.now_ms, sleep=sleep)

    def make_table(self, name: str, **more: Any) -> str:
        made = self.client("dynamodb").create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            Tags=[{"Key": key, "Value": value} for key, value in TAGS.items()],
            **more,
        )
        return made["TableDescription"]["TableArn"]


def statuses(found: Audit, type_: str) -> dict[str, str]:
    return {f.identifier: str(f.status) for f in found.findings if f.type == type_}
