"""The durable service as the gateway meets it: every request finds a place, every look is made again."""

import asyncio
import contextlib
import socket

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aws_durable_execution_sdk_python_testing.web.server import WebServer, WebServiceConfig

from runner.local import plane
from runner.local.durable import DurableService


def test_nobody_waits_for_a_place_in_the_queue_of_connections():
    # With the library's own five, whoever came sixth hung for 1, 3, 7 ... seconds.
    DurableService(1, "http://nobody")
    with (
        WebServer(WebServiceConfig("127.0.0.1", 0), executor=None) as server,
        contextlib.ExitStack() as opened,
    ):
        for _ in range(64):
            opened.enter_context(socket.create_connection(server.server_address, timeout=0.9))


def test_a_look_at_an_execution_that_fails_is_made_again():
    looks = []

    async def answer(request: web.Request) -> web.Response:
        looks.append(request.path)
        if len(looks) < 3:
            request.transport.abort()
        return web.json_response({"Status": "SUCCEEDED"})

    async def scene():
        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        async with TestServer(app) as server, aiohttp.ClientSession() as http:
            service = DurableService(server.port, "http://nobody")
            assert (await service.wait(http, "arn"))["Status"] == "SUCCEEDED"

    asyncio.run(scene())
    assert len(looks) >= 3


def test_a_port_that_was_chosen_can_no_longer_be_taken():
    with plane.listening() as listener, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError):
            other.bind(listener.getsockname())
        # Whoever comes before the engine is up waits in the queue and is not turned away.
        socket.create_connection(listener.getsockname(), timeout=0.9).close()
