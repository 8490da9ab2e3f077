"""plane: the one process under the guard; it holds the gateway and starts MiniStack.

Reports one JSON line on stdout, `{"endpoint": ...}` once everything is healthy or `{"error": ...}`,
then stays until an engine ends. Only the guard stops it.
"""

import argparse
import asyncio
import ctypes
import json
import logging
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

from runner.local import ministack
from runner.local.ministack import ACCOUNT, ROOT

LOG = logging.getLogger(__name__)
READY_LIMIT_S = 120
BACKLOG = 512
# Below the ports that Linux and macOS hand to outgoing connections: one of those could take a port
# between our choosing it and the engine's binding it.
PORTS = range(20000, 32000)


class EngineEnded(Exception):
    """An engine ended by itself; the message says which and how."""


def free_port() -> int:
    """Return a port on 127.0.0.1 on which nothing listens, for whom cannot be handed a socket."""
    for port in random.sample(PORTS, 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError("no free port on 127.0.0.1")


def die_with_plane(plane_pid: int) -> None:
    """In MiniStack, before exec (Linux): end with us when the guard itself got SIGKILL."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != plane_pid:
        os._exit(1)


def listening() -> socket.socket:
    """Return a socket that listens on 127.0.0.1. Nobody can take its port from here on."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL at which a listening socket is reached."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def start_ministack(args: argparse.Namespace, listener: socket.socket, gateway_port: int) -> subprocess.Popen:
    """Start MiniStack first, on a socket of ours: it boots while we import the rest."""
    plane_pid = os.getpid()
    with (args.logs / "ministack.log").open("ab") as log:
        return subprocess.Popen(
            ministack.command(args.ministack_python, listener.fileno()),
            pass_fds=(listener.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **ministack.settings(gateway_port=gateway_port, iam=args.iam == "on")},
            # `-m` puts the working directory on sys.path; the temporary folder holds no modules.
            cwd=os.environ["TMPDIR"],
            preexec_fn=(lambda: die_with_plane(plane_pid)) if sys.platform == "linux" else None,
        )


async def serve(listener: socket.socket, engine: subprocess.Popen, ministack_url: str, gateway: str) -> None:
    """Run the durable service and the gateway; returns by raising EngineEnded."""
    import aiohttp
    from aiohttp import web

    from runner.local.durable import DurableService
    from runner.local.gateway import Gateway
    from runner.local.mappings import DurableMappings

    durable = DurableService(free_port(), ministack_url)
    durable.start()
    # Neither a client's nor our own timeout may cut a long Invoke: the caller's deadline is the study.
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
    ) as http:
        mappings = DurableMappings(ministack_url, durable, http)
        runner = web.AppRunner(Gateway(ministack_url, durable, mappings, http).app(), access_log=None)
        await runner.setup()
        await web.SockSite(runner, listener, backlog=BACKLOG).start()
        await ready(http, engine, gateway)
        report({"endpoint": gateway, "home": os.environ["TMPDIR"]})
        while engine.poll() is None:
            await asyncio.sleep(0.2)
        raise EngineEnded(f"MiniStack ended with code {engine.returncode}")


async def ready(http, engine: subprocess.Popen, gateway: str) -> None:
    """Wait until the gateway says that both engines are healthy."""
    import aiohttp

    async with asyncio.timeout(READY_LIMIT_S):
        while True:
            if engine.poll() is not None:
                raise EngineEnded(f"MiniStack ended with code {engine.returncode}")
            try:
                async with http.get(f"{gateway}/_suc/health") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.03)


def report(line: dict) -> None:
    """Tell the launcher, once, and let go of its pipe."""
    print(json.dumps(line), flush=True)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)


def main(argv: list[str]) -> int:
    """Start everything and stay."""
    parser = argparse.ArgumentParser(prog="plane")
    parser.add_argument("--ministack-python", required=True)
    parser.add_argument("--iam", choices=("on", "off"), required=True)
    parser.add_argument("--logs", type=Path, required=True)
    args = parser.parse_args(argv)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("runner").setLevel(logging.INFO)

    with listening() as listener:
        with listening() as inner:
            # Ours is closed once MiniStack has its own: nobody may wait at the door of a dead engine.
            ministack_url, engine = url_of(inner), start_ministack(args, inner, listener.getsockname()[1])
        # The durable service invokes handlers through a client of the default credential chain.
        os.environ.update(AWS_ACCESS_KEY_ID=ACCOUNT, AWS_SECRET_ACCESS_KEY=ROOT["aws_secret_access_key"])
        try:
            asyncio.run(serve(listener, engine, ministack_url, url_of(listener)))
        except (EngineEnded, TimeoutError) as error:
            LOG.error("%s", error)
            report({"error": str(error) or f"not healthy within {READY_LIMIT_S} s"})
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
