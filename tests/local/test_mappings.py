"""The durable mapping alone: what it takes over, serves and shows, and what a lost answer may not change."""

import asyncio
import contextlib
from datetime import UTC, datetime

import pytest
from botocore.exceptions import ReadTimeoutError

from runner.local.mappings import Mapping
from tests.local.test_gateway import FULL, lab

QUEUE = "arn:aws:sqs:us-east-1:000000000000:q.fifo"
LONG_AGO = datetime.fromtimestamp(0, UTC)
MESSAGE = {"MessageId": "m", "ReceiptHandle": "r", "Body": "{}"}


class Lambda:
    """Stands in for MiniStack's Lambda: one mapping onto the durable function."""

    def __init__(self, state: str, *, answers_lost: int = 0):
        self.state = state
        self.answers_lost = answers_lost

    def get_paginator(self, _name):
        return self

    def paginate(self):
        found = {"UUID": "m-1", "State": self.state, "FunctionArn": f"{FULL}:live", "EventSourceArn": QUEUE}
        return [{"EventSourceMappings": [found]}]

    def update_event_source_mapping(self, UUID, Enabled):
        self.state = "Enabled" if Enabled else "Disabled"
        if self.answers_lost:
            self.answers_lost -= 1
            raise ReadTimeoutError(endpoint_url="ministack")


@pytest.mark.parametrize("found", ["Enabled", "Disabled"])
def test_a_mapping_is_shown_as_it_was_when_it_was_taken_over(found):
    async def scene():
        async with lab() as (_, _, _, _, _, mappings):
            engine = mappings._clients["lambda"] = Lambda(found)
            for _ in range(2):
                (taken,) = mappings._take_over()
                mappings._adopted = {taken.uuid: taken}
                assert engine.state == "Disabled"
                assert mappings.present({"UUID": "m-1", "State": engine.state})["State"] == found

    asyncio.run(scene())


def test_a_takeover_whose_answer_is_lost_is_not_taken_for_a_clients_change():
    async def scene():
        async with lab() as (_, _, _, _, _, mappings):
            mappings._clients["lambda"] = Lambda("Enabled", answers_lost=1)
            with contextlib.suppress(ReadTimeoutError):
                list(mappings._take_over())
            (taken,) = mappings._take_over()
            mappings._adopted = {taken.uuid: taken}
            assert mappings.present({"UUID": "m-1", "State": "Disabled"})["State"] == "Enabled"

    asyncio.run(scene())


class Queue:
    """Stands in for what the mapping asks of MiniStack; a receive ends when it is told what it received."""

    def __init__(self, *, deletes_lost: int = 0):
        self.received: asyncio.Queue = asyncio.Queue()
        self.receives = self.deletes = 0
        self.deletes_lost = deletes_lost

    async def __call__(self, _service, operation, **_parameters):
        if operation == "receive_message":
            self.receives += 1
            return {"Messages": await self.received.get()}
        if operation == "delete_message":
            self.deletes += 1
            if self.deletes <= self.deletes_lost:
                raise ReadTimeoutError(endpoint_url="ministack")
        return {"QueueUrl": "q", "LastModified": LONG_AGO, "UUID": "m-1", "ResponseMetadata": {}}


@contextlib.asynccontextmanager
async def serving(queue: Queue):
    """Serve one mapping from the stand-in; yields when its first receive is under way."""
    async with lab() as (_, _, _, _, durable, mappings):
        mappings._aws = queue
        mapping = Mapping("m-1", QUEUE, mappings.functions["fn"], "live")
        mappings._adopted = {"m-1": mapping}
        mappings._serve_what_is_wanted()
        await until(lambda: queue.receives == 1)
        yield mappings, durable
        mappings._adopted = {}
        mappings._serve_what_is_wanted()
        queue.received.put_nowait([])


async def until(condition) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def state_of(mappings) -> str:
    return mappings.present({"UUID": "m-1", "State": "Disabled"})["State"]


@pytest.mark.parametrize("messages", [[], [MESSAGE]], ids=["nothing comes", "a message comes"])
def test_a_mapping_is_disabling_until_its_receive_can_no_longer_begin_an_execution(messages):
    # A send after "Disabled" was once taken by the receive that had begun before.
    async def scene():
        queue = Queue()
        async with serving(queue) as (mappings, durable):
            assert state_of(mappings) == "Enabled"
            assert (await mappings.enable("m-1", False))["State"] == "Disabling"
            queue.received.put_nowait(messages)
            await until(lambda: state_of(mappings) == "Disabled")
            assert (len(durable.started), queue.receives) == (len(messages), 1)
            assert (await mappings.enable("m-1", True))["State"] == "Enabled"
            await until(lambda: queue.receives == 2)

    asyncio.run(scene())


def test_the_message_of_a_succeeded_execution_is_deleted_although_an_answer_is_lost():
    async def scene():
        queue = Queue(deletes_lost=2)
        async with serving(queue) as (_, durable):
            queue.received.put_nowait([MESSAGE])
            await until(lambda: queue.receives == 2)
            assert (queue.deletes, len(durable.started)) == (3, 1)

    asyncio.run(scene())
