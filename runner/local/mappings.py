"""The durable mapping: queues of durable functions, served here instead of by MiniStack.

MiniStack's own poller never starts a durable execution, so each of its SQS mappings onto a function
with DurableConfig is disabled and served here: receive one message, start one durable execution of
the version that the mapping's alias points to, wait for its end, delete the message only on success.

The poller must not take a message first, so nothing is sent between a stack change and its takeover:

    client      CreateStack ........................ SendMessage ------------.
    gateway     hold sends -> forward -> settle() -> release sends -> forward
    MiniStack                 mapping enabled, disabled here         queue empty until now

Clients go on seeing such a mapping as enabled, and can disable and enable it, as on AWS: it is Disabling
until no receive is under way that could still begin an execution. A change of a mapping waits like a send:
it must reach the one who serves the queue.
"""

import asyncio
import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import aiohttp
from botocore.exceptions import BotoCoreError, ClientError

from runner.local.clients import make_client
from runner.local.durable import DurableFunction, DurableService
from runner.local.ministack import REGION

LOG = logging.getLogger(__name__)
LONG_POLL_S = 2
# A custom resource may itself send while its stack is in progress: never hold it for ever.
HOLD_LIMIT_S = 45
TAKEOVER_ATTEMPTS = 5
DELETE_ATTEMPTS = 5
STANDARD_QUEUE_SLOTS = 5


@dataclass(frozen=True)
class Mapping:
    """One SQS event source mapping onto a qualified durable function."""

    uuid: str
    queue_arn: str
    function: DurableFunction
    qualifier: str

    @property
    def slots(self) -> int:
        """Deliveries in flight: one for a FIFO queue, so that groups keep their order."""
        return 1 if self.queue_arn.endswith(".fifo") else STANDARD_QUEUE_SLOTS


class DurableMappings:
    """Knows the durable functions of all stacks and serves their queues."""

    def __init__(self, ministack_url: str, durable: DurableService, http: aiohttp.ClientSession):
        self._durable = durable
        self._http = http
        self._url = ministack_url
        self._clients: dict = {}
        self._making_client = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=32, thread_name_prefix="aws")
        self._serving: dict[Mapping, asyncio.Event] = {}
        # What clients disabled, and every mapping ever taken over: one that is found disabled before
        # that was disabled by a client whom the gateway no longer held.
        self._paused: set[str] = set()
        self._ever_adopted: set[str] = set()
        self._changes = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self._reconciling = asyncio.Lock()
        self._background: set[asyncio.Task] = set()
        self._adopted: dict[str, Mapping] = {}
        # By mapping, the receives under way, until what they received is an execution.
        self._receiving: Counter[str] = Counter()
        self.functions: dict[str, DurableFunction] = {}

    def _client(self, service: str):
        # Made on first use, so that start-up does not wait for it; making one is not thread-safe.
        with self._making_client:
            if service not in self._clients:
                self._clients[service] = make_client(self._url, service)
            return self._clients[service]

    async def _in_thread(self, call: Callable):
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def _aws(self, service: str, operation: str, **parameters) -> dict:
        return await self._in_thread(lambda: getattr(self._client(service), operation)(**parameters))

    # -- stack changes ---------------------------------------------------------------------------

    def stack_change_begins(self) -> None:
        """Hold sends, invokes and changes of mappings; called before the change is forwarded."""
        self._changes += 1
        self._settled.clear()

    def stack_change_forwarded(self) -> None:
        """Take over in the background, then release what is held."""
        self._spawn(self._settle())

    async def settled(self) -> None:
        """Wait until no stack change is under way."""
        try:
            await asyncio.wait_for(self._settled.wait(), HOLD_LIMIT_S)
        except TimeoutError:
            LOG.warning("a stack change takes over %s s; requests are no longer held", HOLD_LIMIT_S)

    async def _settle(self) -> None:
        for attempt in range(1, TAKEOVER_ATTEMPTS + 1):
            try:
                while await self.reconcile():
                    await asyncio.sleep(0.02)
                break
            except Exception:
                # A stack that is deleted between its listing and its description, for one.
                LOG.exception("takeover of durable mappings failed, attempt %s", attempt)
                await asyncio.sleep(0.1 * attempt)
        self._changes -= 1
        if not self._changes:
            self._settled.set()

    async def reconcile(self) -> bool:
        """Serve exactly the mappings that exist now; return whether a stack is still changing."""
        async with self._reconciling:
            busy, self.functions = await self._in_thread(self._read_functions)
            taken = await self._in_thread(lambda: list(self._take_over()))
            self._adopted = {mapping.uuid: mapping for mapping in taken}
            self._serve_what_is_wanted()
            return busy

    def _serve_what_is_wanted(self) -> None:
        wanted = {mapping for uuid, mapping in self._adopted.items() if uuid not in self._paused}
        for mapping in self._serving.keys() - wanted:
            # A delivery under way ends in peace: cut off, its message would come a second time.
            self._serving.pop(mapping).set()
        for mapping in wanted - self._serving.keys():
            stop = self._serving[mapping] = asyncio.Event()
            for _ in range(mapping.slots):
                self._spawn(self._serve(mapping, stop))

    def _spawn(self, work: Coroutine) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _read_functions(self) -> tuple[bool, dict[str, DurableFunction]]:
        cloudformation, busy, functions = self._client("cloudformation"), False, {}
        for page in cloudformation.get_paginator("describe_stacks").paginate():
            for stack in page["Stacks"]:
                status = stack["StackStatus"]
                busy |= status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"
                if status != "REVIEW_IN_PROGRESS":
                    functions.update(self._functions_of(stack["StackName"]))
        return busy, functions

    def _functions_of(self, stack: str) -> dict[str, DurableFunction]:
        cloudformation = self._client("cloudformation")
        template = cloudformation.get_template(StackName=stack)["TemplateBody"]
        if isinstance(template, str):
            LOG.warning("stack %s: only JSON templates are searched for DurableConfig", stack)
            return {}
        durable = {
            logical_id: resource["Properties"]["DurableConfig"]
            for logical_id, resource in template.get("Resources", {}).items()
            if resource["Type"] == "AWS::Lambda::Function"
            and "DurableConfig" in resource.get("Properties", {})
        }
        if not durable:
            return {}
        described = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
        return {
            r["PhysicalResourceId"]: DurableFunction(
                name=r["PhysicalResourceId"],
                execution_timeout_s=int(durable[r["LogicalResourceId"]]["ExecutionTimeout"]),
                retention_days=int(durable[r["LogicalResourceId"]].get("RetentionPeriodInDays", 30)),
            )
            for r in described
            if r["LogicalResourceId"] in durable and r.get("PhysicalResourceId")
        }

    def _take_over(self) -> Iterator[Mapping]:
        lambda_ = self._client("lambda")
        for page in lambda_.get_paginator("list_event_source_mappings").paginate():
            for found in page["EventSourceMappings"]:
                name, _, qualifier = found["FunctionArn"].split(":function:")[1].partition(":")
                if name not in self.functions or ":sqs:" not in found["EventSourceArn"]:
                    continue
                known = found["UUID"] in self._ever_adopted
                # Before the call: it may have disabled the mapping although its answer is lost.
                self._ever_adopted.add(found["UUID"])
                if found["State"] != "Disabled":
                    lambda_.update_event_source_mapping(UUID=found["UUID"], Enabled=False)
                elif not known:
                    self._paused.add(found["UUID"])
                yield Mapping(found["UUID"], found["EventSourceArn"], self.functions[name], qualifier)

    # -- what clients see and ask ----------------------------------------------------------------

    def adopts(self, uuid: str) -> bool:
        """Whether a mapping is served here."""
        return uuid in self._adopted

    def present(self, mapping: dict) -> dict:
        """Return an API description with the state that AWS would show."""
        if not self.adopts(mapping.get("UUID", "")):
            return mapping
        if mapping["UUID"] not in self._paused:
            return {**mapping, "State": "Enabled"}
        return {**mapping, "State": "Disabling" if self._receiving[mapping["UUID"]] else "Disabled"}

    async def enable(self, uuid: str, enabled: bool) -> dict:
        """Stop or resume a mapping; return its description."""
        (self._paused.discard if enabled else self._paused.add)(uuid)
        self._serve_what_is_wanted()
        described = await self._aws("lambda", "get_event_source_mapping", UUID=uuid)
        described.pop("ResponseMetadata")
        return self.present({**described, "LastModified": described["LastModified"].timestamp()})

    # -- deliveries ------------------------------------------------------------------------------

    async def _serve(self, mapping: Mapping, stop: asyncio.Event) -> None:
        LOG.info("serving %s -> %s:%s", mapping.queue_arn, mapping.function.name, mapping.qualifier)
        queue_url = None
        while not stop.is_set():
            try:
                if queue_url is None:
                    name = mapping.queue_arn.rsplit(":", 1)[1]
                    queue_url = (await self._aws("sqs", "get_queue_url", QueueName=name))["QueueUrl"]
                    continue
                for message, arn in await self._begin_next(mapping, queue_url):
                    await self._end(message, arn, queue_url)
            except Exception:
                # The message, if one was received, comes back after its visibility timeout.
                LOG.exception("delivery from %s failed", mapping.queue_arn)
                await asyncio.sleep(1)

    async def _begin_next(self, mapping: Mapping, queue_url: str) -> list[tuple[dict, str]]:
        """Receive one message, if there is one, and start its execution; return both."""
        self._receiving[mapping.uuid] += 1
        try:
            received = await self._aws(
                "sqs",
                "receive_message",
                QueueUrl=queue_url,
                MaxNumberOfMessages=1,
                WaitTimeSeconds=LONG_POLL_S,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            begun = []
            for message in received.get("Messages", []):
                version = await self.version_of(mapping.function.name, mapping.qualifier)
                event = json.dumps({"Records": [sqs_record(message, mapping.queue_arn)]})
                arn = await self._durable.start_execution(self._http, mapping.function, version, event)
                begun.append((message, arn))
            return begun
        finally:
            self._receiving[mapping.uuid] -= 1

    async def _end(self, message: dict, arn: str, queue_url: str) -> None:
        """Wait for the execution and delete its message if it succeeded."""
        status = (await self._durable.wait(self._http, arn))["Status"]
        LOG.info("message %s: execution %s %s", message["MessageId"], arn, status)
        if status != "SUCCEEDED":
            return
        for attempt in range(1, DELETE_ATTEMPTS + 1):
            try:
                handle = message["ReceiptHandle"]
                await self._aws("sqs", "delete_message", QueueUrl=queue_url, ReceiptHandle=handle)
                return
            except (BotoCoreError, ClientError):
                # Not deleted, the message comes again and a second execution begins.
                LOG.exception("message %s was not deleted, attempt %s", message["MessageId"], attempt)
                await asyncio.sleep(0.1 * attempt)

    async def version_of(self, function: str, qualifier: str) -> str:
        """Resolve an alias to the version it points to; a version or $LATEST is itself."""
        if not qualifier or qualifier == "$LATEST" or qualifier.isdigit():
            return qualifier or "$LATEST"
        alias = await self._aws("lambda", "get_alias", FunctionName=function, Name=qualifier)
        return alias["FunctionVersion"]


def sqs_record(message: dict, queue_arn: str) -> dict:
    """Return a received message in the shape in which Lambda hands it to a function."""
    attributes = {
        name: {key[0].lower() + key[1:]: value for key, value in attribute.items()}
        for name, attribute in message.get("MessageAttributes", {}).items()
    }
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": attributes,
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    }
