"""AWS's durable testing library as the durable-execution service, in real time, on its own port."""

import asyncio
import logging
import threading
import uuid
from dataclasses import dataclass
from urllib.parse import quote

import aiohttp
from aws_durable_execution_sdk_python_testing.runner import WebRunner, WebRunnerConfig
from aws_durable_execution_sdk_python_testing.web.server import WebServer, WebServiceConfig
from yarl import URL

from runner.local.ministack import ACCOUNT, REGION

LOG = logging.getLogger(__name__)
# An unknown status is not terminal (CASES D09).
TERMINAL = frozenset({"SUCCEEDED", "FAILED", "TIMED_OUT", "STOPPED"})
POLL_S = (0.02, 0.2)
# It takes a new connection for every request, and the library queues 5 of them. Whoever finds the queue
# full is not refused but tries again after 1, 3, 7 ... seconds: a request that hangs for no visible reason.
CONNECTION_QUEUE = 512


@dataclass(frozen=True)
class DurableFunction:
    """A function with DurableConfig in its deployed template."""

    name: str
    execution_timeout_s: int
    retention_days: int


class DurableService:
    """Starts durable executions and waits for their ends; the handlers run in MiniStack."""

    def __init__(self, port: int, handlers_url: str):
        self.url = f"http://127.0.0.1:{port}"
        WebServer.request_queue_size = CONNECTION_QUEUE
        self._runner = WebRunner(
            WebRunnerConfig(
                web_service=WebServiceConfig("127.0.0.1", port, log_level=logging.WARNING),
                lambda_endpoint=handlers_url,
                local_runner_region=REGION,
                skip_time=False,
            )
        )

    def start(self) -> None:
        """Serve from a daemon thread: the service ends with the process, never before."""
        self._runner.start()
        threading.Thread(target=self._runner.serve_forever, daemon=True, name="durable").start()

    async def start_execution(
        self,
        http: aiohttp.ClientSession,
        function: DurableFunction,
        version: str,
        payload: str,
        name: str | None = None,
    ) -> str:
        """Start one execution of a version and return its ARN."""
        body = {
            "AccountId": ACCOUNT,
            "FunctionName": function.name,
            "FunctionQualifier": version,
            "ExecutionName": name or str(uuid.uuid4()),
            "ExecutionTimeoutSeconds": function.execution_timeout_s,
            "ExecutionRetentionPeriodDays": function.retention_days,
            "Input": payload,
        }
        async with http.post(f"{self.url}/start-durable-execution", json=body) as answer:
            answer.raise_for_status()
            return (await answer.json())["ExecutionArn"]

    async def wait(self, http: aiohttp.ClientSession, arn: str) -> dict:
        """Return the execution once it is terminal. Its own timeout bounds the wait.

        A look that fails is made again: given up, a delivery would come a second time.
        """
        pause, longest = POLL_S
        url = f"{self.url}/2025-12-01/durable-executions/{quote(arn, safe='')}"
        while True:
            execution: dict = {}
            try:
                async with http.get(URL(url, encoded=True)) as answer:
                    if answer.status == 200:
                        execution = await answer.json()
            except aiohttp.ClientError as error:
                LOG.warning("execution %s could not be looked at: %s", arn, error)
            if execution.get("Status") in TERMINAL:
                return execution
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, longest)
