"""The gateway's routing, against stand-ins for both engines in this process."""

import asyncio
import contextlib

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, make_mocked_request
from yarl import URL

from runner.local.durable import DurableFunction
from runner.local.gateway import Gateway
from runner.local.invoke import invoked_function
from runner.local.mappings import DurableMappings, sqs_record

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
INVOKE = "/2015-03-31/functions/{}/invocations"


class Engine:
    """Answers everything and remembers what it was asked."""

    def __init__(self, name: str):
        self.name = name
        self.asked: list[tuple[str, str, bytes]] = []
        self.headers: list[dict] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append((request.method, request.raw_path, await request.read()))
        self.headers.append(dict(request.headers))
        odd = {"X-Amz-Request-Id": "r", "Content-Type": "text/x-odd"}
        return web.Response(status=418, body=self.name.encode(), headers=odd)


class Durable:
    """Stands in for the durable service: every execution succeeds at once."""

    def __init__(self, url: str):
        self.url = url
        self.started: list[tuple] = []

    async def start_execution(self, _http, function, version, payload, name=None):
        self.started.append((function.name, version, payload, name))
        return f"arn-{len(self.started)}"

    async def wait(self, _http, arn):
        return {"Status": "SUCCEEDED", "Result": f'"{arn}"'}


@contextlib.asynccontextmanager
async def lab():
    """Run a gateway in front of two stand-ins; the function `fn` is durable, its alias is version 7."""
    ministack, durable_engine = Engine("ministack"), Engine("durable")
    async with contextlib.AsyncExitStack() as stack:
        urls = []
        for engine in (ministack, durable_engine):
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", engine.answer)
            server = await stack.enter_async_context(TestServer(app))
            urls.append(str(server.make_url("")).rstrip("/"))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        durable = Durable(urls[1])
        mappings = DurableMappings(urls[0], durable, http)
        mappings.functions = {"fn": DurableFunction("fn", 30, 7)}

        async def version_of(_function, _qualifier):
            return "7"

        async def reconcile():
            return False

        mappings.version_of, mappings.reconcile = version_of, reconcile
        gateway = await stack.enter_async_context(TestServer(Gateway(urls[0], durable, mappings, http).app()))
        yield http, str(gateway.make_url("")).rstrip("/"), ministack, durable_engine, durable, mappings


def test_a_request_reaches_ministack_with_its_path_host_and_body_and_its_answer_comes_back():
    async def scene():
        async with lab() as (http, url, ministack, durable, _, _):
            path = "/bucket/a%20b%2Fc%2B?list-type=2&prefix=%C3%A7"
            signed = {"Host": "s3.example", "Authorization": "AWS4-HMAC-SHA256 x"}
            async with http.put(URL(url + path, encoded=True), data=b"\0\xff", headers=signed) as answer:
                told = (answer.status, await answer.text(), answer.headers["X-Amz-Request-Id"])
                assert told == (418, "ministack", "r")
                assert answer.headers["Content-Type"] == "text/x-odd"
            assert ministack.asked == [("PUT", path, b"\0\xff")]
            assert ministack.headers[0].items() >= signed.items()
            assert durable.asked == []

    asyncio.run(scene())


def test_durable_routes_reach_the_durable_service():
    async def scene():
        async with lab() as (http, url, ministack, durable, _, _):
            path = "/2025-12-01/durable-executions/a%2Fb/history?MaxItems=5"
            async with http.get(URL(url + path, encoded=True)) as answer:
                assert await answer.text() == "durable"
            assert durable.asked == [("GET", path, b"")]
            assert ministack.asked == []

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (INVOKE.format("plain"), {}),
        (INVOKE.format("fn") + "?Qualifier=live", {"X-Dex-Handler-Invoke": "true"}),
        (INVOKE.format("fn%3A7"), {"X-Dex-Handler-Invoke": "true"}),
        (INVOKE.format("fn") + "?Qualifier=live", {"X-Amz-Invocation-Type": "DryRun"}),
    ],
    ids=["plain function", "handler by query", "handler by name", "dry run"],
)
def test_invokes_that_ministack_answers(path, headers):
    async def scene():
        async with lab() as (http, url, ministack, _, durable, _):
            async with http.post(URL(url + path, encoded=True), data=b"{}", headers=headers) as answer:
                assert await answer.text() == "ministack"
            assert durable.started == []

    asyncio.run(scene())


def test_invoke_of_a_durable_function_runs_the_version_of_its_alias():
    async def scene():
        async with lab() as (http, url, ministack, _, durable, _):
            async with http.post(url + INVOKE.format("fn") + "?Qualifier=live", data=b'{"a":1}') as answer:
                assert (answer.status, await answer.text()) == (200, '"arn-1"')
                assert answer.headers["X-Amz-Durable-Execution-Arn"] == "arn-1"
                assert answer.headers["X-Amz-Executed-Version"] == "7"
            assert durable.started == [("fn", "7", '{"a":1}', None)]
            assert ministack.asked == []

    asyncio.run(scene())


@pytest.mark.parametrize("name", ["x" * 65, "a.b", "a:b", ""])
def test_d07_a_name_that_aws_refuses_starts_nothing(name):
    async def scene():
        async with lab() as (http, url, _, _, durable, _):
            headers = {"X-Amz-Durable-Execution-Name": name}
            async with http.post(url + INVOKE.format("fn") + "?Qualifier=live", headers=headers) as answer:
                assert answer.status == 400
                assert answer.headers["x-amzn-errortype"] == "InvalidParameterValueException"
            assert durable.started == []

    asyncio.run(scene())


SENDS = {
    "json": ({"X-Amz-Target": "AmazonSQS.SendMessage"}, b"{}"),
    "json batch": ({"X-Amz-Target": "AmazonSQS.SendMessageBatch"}, b"{}"),
    "query": (FORM, b"QueueUrl=q&Action=SendMessage&MessageBody=m"),
}


@pytest.mark.parametrize("send", SENDS.values(), ids=SENDS.keys())
@pytest.mark.parametrize("action", ["CreateStack", "UpdateStack", "ExecuteChangeSet", "DeleteStack"])
def test_a_send_waits_until_the_takeover_after_a_stack_change(action, send):
    async def scene():
        async with lab() as (http, url, ministack, _, _, mappings):
            taken_over = asyncio.Event()

            async def reconcile():
                await taken_over.wait()
                return False

            mappings.reconcile = reconcile
            change = f"Action={action}&StackName=S".encode()
            async with http.post(url, data=change, headers=FORM) as answer:
                assert answer.status == 418
            waiting = asyncio.create_task(http.post(url, data=send[1], headers=send[0]))
            # Reads pass all the while; the send does not.
            async with http.post(url, data=b"Action=DescribeStacks", headers=FORM):
                pass
            assert [body for _, _, body in ministack.asked] == [change, b"Action=DescribeStacks"]
            assert not waiting.done()
            taken_over.set()
            (await waiting).close()
            assert ministack.asked[-1][2] == send[1]

    asyncio.run(scene())


def test_a_change_of_a_mapping_waits_until_the_takeover_and_reaches_the_one_who_serves_it():
    # Seen in CI: forwarded before the takeover, it was lost, and the mapping was shown as enabled for ever.
    async def scene():
        async with lab() as (http, url, ministack, _, _, mappings):
            taken_over = asyncio.Event()

            async def reconcile():
                await taken_over.wait()
                mappings._adopted = {"m-1": None}
                return False

            async def enable(uuid, enabled):
                return {"UUID": uuid, "State": "Enabled" if enabled else "Disabled"}

            mappings.reconcile, mappings.enable = reconcile, enable
            async with http.post(url, data=b"Action=CreateStack&StackName=S", headers=FORM):
                pass
            change = http.put(f"{url}/2015-03-31/event-source-mappings/m-1", data=b'{"Enabled": false}')
            waiting = asyncio.create_task(change)
            async with http.post(url, data=b"Action=DescribeStacks", headers=FORM):
                pass
            assert not waiting.done()
            taken_over.set()
            async with await waiting as answer:
                told = await answer.json()
            assert (answer.status, told) == (202, {"UUID": "m-1", "State": "Disabled"})
            assert [method for method, _, _ in ministack.asked] == ["POST", "POST"]

    asyncio.run(scene())


def test_a_takeover_that_fails_is_tried_again_before_anything_is_released():
    async def scene():
        async with lab() as (http, url, ministack, _, _, mappings):
            looks = []

            async def reconcile():
                looks.append(len(ministack.asked))
                if len(looks) < 3:
                    raise RuntimeError("stack S does not exist")
                return False

            mappings.reconcile = reconcile
            async with http.post(url, data=b"Action=CreateStack&StackName=S", headers=FORM):
                pass
            headers, body = SENDS["json"]
            async with http.post(url, data=body, headers=headers):
                pass
            assert looks == [1, 1, 1]
            assert ministack.asked[-1][2] == body

    asyncio.run(scene())


FULL = "arn:aws:lambda:us-east-1:000000000000:function:fn"


@pytest.mark.parametrize(
    ("reference", "query", "expected"),
    [
        ("fn", "", ("fn", "")),
        ("fn", "?Qualifier=live", ("fn", "live")),
        ("fn%3Alive", "", ("fn", "live")),
        ("fn:3", "", ("fn", "3")),
        (FULL.replace(":", "%3A"), "", ("fn", "")),
        (f"{FULL}:live".replace(":", "%3A"), "", ("fn", "live")),
        ("000000000000%3Afunction%3Afn%3Alive", "", ("fn", "live")),
        ("fn", "?Qualifier=%24LATEST", ("fn", "$LATEST")),
    ],
)
def test_every_way_to_name_a_function_in_an_invoke(reference, query, expected):
    target = invoked_function(make_mocked_request("POST", INVOKE.format(reference) + query))
    assert (target.name, target.qualifier) == expected


@pytest.mark.parametrize("path", ["/2015-03-31/functions/fn", INVOKE.format("fn") + "/x", "/b/invocations"])
def test_what_is_no_invoke(path):
    assert invoked_function(make_mocked_request("POST", path)) is None
    assert invoked_function(make_mocked_request("GET", INVOKE.format("fn"))) is None


def test_a_record_has_the_shape_in_which_lambda_hands_it_over():
    message = {
        "MessageId": "m",
        "ReceiptHandle": "r",
        "Body": "{}",
        "MD5OfBody": "5",
        "Attributes": {"ApproximateReceiveCount": "1"},
        "MessageAttributes": {"k": {"StringValue": "v", "DataType": "String"}},
    }
    assert sqs_record(message, "arn:aws:sqs:us-east-1:0:q.fifo") == {
        "messageId": "m",
        "receiptHandle": "r",
        "body": "{}",
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {"k": {"stringValue": "v", "dataType": "String"}},
        "md5OfBody": "5",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:0:q.fifo",
        "awsRegion": "us-east-1",
    }
