"""The gateway: one port in front of both engines.

    /2025-12-01/...                          the durable service
    Invoke of a durable function             `DurableInvoke`: one durable execution
    mappings that `DurableMappings` serves   MiniStack, shown with the state that AWS would show
    /_suc/health                             our own readiness
    everything else                          MiniStack, byte for byte

Requests keep their path, headers (Host included) and body, because MiniStack verifies SigV4.
"""

import json
import re

import aiohttp
from aiohttp import web
from yarl import URL

from runner.local.clients import SECURE_TRANSPORT
from runner.local.durable import DurableService
from runner.local.invoke import DurableInvoke, invoked_function
from runner.local.mappings import DurableMappings

HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect"}
)
BODY_LIMIT = 512 * 1024 * 1024
# Sent by the durable service when it wants the handler itself to run.
HANDLER_INVOKE = "X-Dex-Handler-Invoke"
STACK_CHANGE = re.compile(
    rb"(?:^|&)Action=(?:CreateStack|UpdateStack|DeleteStack|ExecuteChangeSet|RollbackStack"
    rb"|ContinueUpdateRollback|CancelUpdateStack)(?:&|$)"
)
SEND = re.compile(rb"(?:^|&)Action=SendMessage(?:Batch)?(?:&|$)")
MAPPINGS = re.compile(r"^/2015-03-31/event-source-mappings/?([^/]*)$")
FORM = "application/x-www-form-urlencoded"


class Gateway:
    """Decides which engine answers a request."""

    def __init__(
        self,
        ministack_url: str,
        durable: DurableService,
        mappings: DurableMappings,
        http: aiohttp.ClientSession,
    ):
        self._ministack_url = ministack_url
        self._durable = durable
        self._mappings = mappings
        self._http = http
        self._invoke = DurableInvoke(durable, mappings, http)

    def app(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_get("/_suc/health", self._health)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _health(self, _request: web.Request) -> web.Response:
        health = {}
        urls = {
            "ministack": f"{self._ministack_url}/_ministack/health",
            "durable": f"{self._durable.url}/health",
        }
        for name, url in urls.items():
            try:
                async with self._http.get(url, timeout=aiohttp.ClientTimeout(total=2)) as answer:
                    health[name] = answer.status == 200
            except (aiohttp.ClientError, TimeoutError):
                health[name] = False
        health["durable_functions"] = sorted(self._mappings.functions)
        healthy = health["ministack"] and health["durable"]
        return web.json_response(health, status=200 if healthy else 503)

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path.startswith("/2025-12-01/"):
            return await self._forward(self._durable.url, request, body)
        if _is_form(request) and STACK_CHANGE.search(body):
            return await self._change_stack(request, body)
        if _is_send(request, body):
            await self._mappings.settled()
        target = invoked_function(request)
        if target and HANDLER_INVOKE not in request.headers:
            await self._mappings.settled()
            if target.name in self._mappings.functions and not target.is_dry_run:
                return await self._invoke.answer(target, body)
        if match := MAPPINGS.match(request.path):
            return await self._mapping(request, body, match[1])
        return await self._forward(self._ministack_url, request, body)

    async def _mapping(self, request: web.Request, body: bytes, uuid: str | None) -> web.Response:
        if request.method == "PUT":
            await self._mappings.settled()
        if request.method == "PUT" and self._mappings.adopts(uuid):
            asked = json.loads(body or b"{}")
            if "Enabled" in asked:
                # Never forwarded: enabled, MiniStack's own poller would take the next message.
                return web.json_response(await self._mappings.enable(uuid, asked["Enabled"]), status=202)
        answer = await self._forward(self._ministack_url, request, body)
        if request.method == "GET" and answer.status == 200:
            told = json.loads(answer.body)
            if "EventSourceMappings" in told:
                told["EventSourceMappings"] = [self._mappings.present(m) for m in told["EventSourceMappings"]]
            del answer.headers["Content-Length"]
            answer.body = json.dumps(self._mappings.present(told)).encode()
        return answer

    async def _change_stack(self, request: web.Request, body: bytes) -> web.Response:
        self._mappings.stack_change_begins()
        try:
            return await self._forward(self._ministack_url, request, body)
        finally:
            self._mappings.stack_change_forwarded()

    async def _forward(self, base: str, request: web.Request, body: bytes) -> web.Response:
        headers = [(k, v) for k, v in request.headers.items() if k.lower() not in HOP_BY_HOP]
        headers += SECURE_TRANSPORT.items()
        async with self._http.request(
            request.method,
            URL(base + request.raw_path, encoded=True),
            headers=headers,
            data=body,
            allow_redirects=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
        ) as answer:
            content = await answer.read()
            kept = [(k, v) for k, v in answer.headers.items() if k.lower() not in HOP_BY_HOP]
            return web.Response(status=answer.status, reason=answer.reason, headers=kept, body=content)


def _is_form(request: web.Request) -> bool:
    return request.headers.get("Content-Type", "").startswith(FORM)


def _is_send(request: web.Request, body: bytes) -> bool:
    target = request.headers.get("X-Amz-Target", "")
    return target.startswith("AmazonSQS.SendMessage") or (_is_form(request) and bool(SEND.search(body)))
