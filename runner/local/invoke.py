"""Invoke of a durable function, as AWS answers it: a durable execution of the resolved version."""

import asyncio
import json
import re
from dataclasses import dataclass
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from botocore.exceptions import ClientError

from runner.local.durable import DurableService
from runner.local.mappings import DurableMappings

PATH = re.compile(r"^/2015-03-31/functions/([^/]+)/invocations$")
NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")


@dataclass(frozen=True)
class Target:
    """What an Invoke request asks for."""

    name: str
    qualifier: str
    invocation_type: str
    execution_name: str | None

    @property
    def is_dry_run(self) -> bool:
        """Whether only the permission is asked for, which MiniStack can answer."""
        return self.invocation_type == "DryRun"


def invoked_function(request: web.Request) -> Target | None:
    """Return the function that a request invokes; None when it is no Invoke.

    FunctionName may be a name, a partial ARN or an ARN, each with or without a qualifier.
    """
    match = PATH.match(request.raw_path.partition("?")[0])
    if request.method != "POST" or not match:
        return None
    reference = unquote(match[1])
    name, _, qualifier = reference.rpartition("function:")[2].partition(":")
    return Target(
        name=name,
        qualifier=qualifier or request.query.get("Qualifier", ""),
        invocation_type=request.headers.get("X-Amz-Invocation-Type", "RequestResponse"),
        execution_name=request.headers.get("X-Amz-Durable-Execution-Name"),
    )


class DurableInvoke:
    """Answers Invoke of durable functions; remembers names, which AWS makes idempotent."""

    def __init__(self, durable: DurableService, mappings: DurableMappings, http: aiohttp.ClientSession):
        self._durable = durable
        self._mappings = mappings
        self._http = http
        self._named: dict[tuple[str, str], tuple[bytes, str]] = {}
        self._starting = asyncio.Lock()

    async def answer(self, target: Target, body: bytes) -> web.Response:
        """Start the execution; for RequestResponse wait for its end and return its result."""
        if not target.qualifier:
            message = "You cannot invoke a durable function using an unqualified ARN."
            return _error(400, "InvalidParameterValueException", message)
        if target.execution_name is not None and not NAME.match(target.execution_name):
            return _error(400, "InvalidParameterValueException", "Invalid durable execution name.")
        try:
            version = await self._mappings.version_of(target.name, target.qualifier)
        except ClientError as error:
            return _error(404, error.response["Error"]["Code"], error.response["Error"]["Message"])
        async with self._starting:
            earlier = self._named.get((target.name, target.execution_name or ""))
            if earlier and earlier[0] != body:
                message = f"Execution {target.execution_name} already exists with another payload."
                return _error(409, "DurableExecutionAlreadyStartedException", message)
            arn = earlier[1] if earlier else await self._start(target, version, body)
        headers = {"X-Amz-Executed-Version": version, "X-Amz-Durable-Execution-Arn": arn}
        if target.invocation_type == "Event":
            return web.Response(status=202, headers=headers)
        return _ended(await self._durable.wait(self._http, arn), headers)

    async def _start(self, target: Target, version: str, body: bytes) -> str:
        function = self._mappings.functions[target.name]
        payload = body.decode() or "null"
        name = target.execution_name
        arn = await self._durable.start_execution(self._http, function, version, payload, name)
        if name:
            self._named[target.name, name] = (body, arn)
        return arn


def _ended(execution: dict, headers: dict[str, str]) -> web.Response:
    """Return the handler's value, or the function error of an execution that did not succeed."""
    if execution["Status"] == "SUCCEEDED":
        return web.Response(
            body=(execution.get("Result") or "null").encode(),
            content_type="application/json",
            headers=headers,
        )
    error = execution.get("Error") or {}
    payload = {
        "errorMessage": error.get("ErrorMessage") or f"Durable execution {execution['Status']}",
        "errorType": error.get("ErrorType") or execution["Status"],
        "stackTrace": error.get("StackTrace") or [],
    }
    return web.Response(
        body=json.dumps(payload).encode(),
        content_type="application/json",
        headers={**headers, "X-Amz-Function-Error": "Unhandled"},
    )


def _error(status: int, code: str, message: str) -> web.Response:
    return web.json_response(
        {"Type": "User", "Message": message, "message": message},
        status=status,
        headers={"x-amzn-errortype": code},
    )
