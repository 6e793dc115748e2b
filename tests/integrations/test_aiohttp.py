from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientPayloadError, WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalStateException
from aioproducer.integrations.aiohttp import PRODUCER, error_middleware, get_producer, health_routes, kafka_context
from aioproducer.testing import ApiKey, FaultScript, MockProducer
from tests.support.inside import sender_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import QUICK, all_memory_free

pytestmark = pytest.mark.usefixtures("no_leaks")

CLICKS = web.AppKey("clicks", KafkaProducer)
Client = TestClient[web.Request, web.Application]


async def send(request: web.Request) -> web.Response:
    metadata = await get_producer(request).send(request.query.get("topic", "t"), await request.read())
    return web.json_response(metadata.offset, status=201)


async def take(request: web.Request) -> web.Response:
    _ = await get_producer(request).enqueue("t", await request.read())
    return web.Response(status=202)


def make_app(context: Any) -> web.Application:
    app = web.Application(middlewares=[error_middleware(retry_after=3)])
    if context is not None:
        app.cleanup_ctx.append(context)
    app.add_routes(health_routes())
    app.add_routes([web.post("/sent", send), web.post("/taken", take)])
    return app


@asynccontextmanager
async def client_of(app: web.Application) -> AsyncIterator[Client]:
    async with TestClient(TestServer(app)) as client:
        yield client


def values(cluster: EmbeddedCluster) -> list[bytes | None]:
    return [record.value for record in cluster.log("t").records()]


async def test_a_request_is_answered_when_its_record_is_in_the_log() -> None:
    async with EmbeddedCluster() as cluster:
        app = make_app(kafka_context(bootstrap_servers=cluster.bootstrap_servers, **QUICK))
        async with client_of(app) as client:
            async with client.post("/sent", data=b"value") as answer:
                assert (answer.status, await answer.json()) == (201, 0)
            assert values(cluster) == [b"value"]
            async with client.get("/health/ready") as ready:
                assert (ready.status, await ready.json()) == (200, {"ok": True, "why_not": [], "findings": []})


async def test_accepted_records_are_delivered_when_the_service_ends() -> None:
    slow = {**QUICK, "linger_ms": 60_000, "delivery_timeout_ms": 120_000}
    async with EmbeddedCluster() as cluster:
        async with client_of(make_app(kafka_context(bootstrap_servers=cluster.bootstrap_servers, **slow))) as client:
            async with client.post("/taken", data=b"value") as answer:
                assert answer.status == 202
            assert values(cluster) == []
        assert values(cluster) == [b"value"]


async def test_it_is_within_a_context_of_the_users_own_and_parts_of_the_application_have_it() -> None:
    async with EmbeddedCluster() as cluster:

        async def context(app: web.Application) -> AsyncIterator[None]:
            inner = kafka_context(bootstrap_servers=cluster.bootstrap_servers, **QUICK)
            async with asynccontextmanager(inner)(app):
                yield

        part = web.Application()
        part.add_routes([web.post("/sent", send)])
        app = make_app(context)
        app.add_subapp("/part", part)
        async with client_of(app) as client, client.post("/part/sent", data=b"value") as answer:
            assert answer.status == 201
            assert app[PRODUCER].config.bootstrap_servers == (cluster.bootstrap_servers,)


async def test_errors_are_answered() -> None:
    async with EmbeddedCluster() as cluster:
        context = kafka_context(bootstrap_servers=cluster.bootstrap_servers, max_request_size=1000, **QUICK)
        async with client_of(make_app(context)) as client:
            async with client.post("/sent", data=bytes(2000)) as answer:
                assert (answer.status, (await answer.json())["error"]) == (413, "RecordTooLargeException")
            async with client.post("/sent", params={"topic": ""}, data=b"value") as answer:
                assert answer.status == 500


async def test_without_a_broker_it_starts_is_not_ready_and_says_when_to_come_again() -> None:
    async with EmbeddedCluster() as cluster:
        servers = cluster.bootstrap_servers
    async with client_of(make_app(kafka_context(bootstrap_servers=servers, **{**QUICK, "max_block_ms": 50}))) as client:
        async with client.get("/health/ready") as ready:
            assert ready.status == 503
            assert "no broker was reached yet" in (await ready.json())["why_not"]
        async with client.get("/health/live") as live:
            assert live.status == 200
        async with client.post("/sent", data=b"value") as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "3")


async def test_a_missing_producer_is_an_error() -> None:
    seen = []

    async def handler(request: web.Request) -> web.Response:
        with pytest.raises(IllegalStateException, match=r"cleanup_ctx\.append\(kafka_context") as raised:
            get_producer(request)
        seen.append(raised)
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/", handler)])
    async with client_of(app) as client, client.get("/"):
        assert len(seen) == 1


async def test_a_response_that_has_begun_gets_no_second_one(caplog: pytest.LogCaptureFixture) -> None:
    async def streamed(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"begun ")
        await get_producer(request).send("t", bytes(2000))
        return response

    async def socket(request: web.Request) -> web.StreamResponse:
        response = web.WebSocketResponse()
        await response.prepare(request)
        await get_producer(request).send("t", await response.receive_bytes())
        return response

    async with EmbeddedCluster() as cluster:
        app = make_app(kafka_context(bootstrap_servers=cluster.bootstrap_servers, max_request_size=1000, **QUICK))
        app.add_routes([web.get("/streamed", streamed), web.get("/socket", socket)])
        async with client_of(app) as client:
            async with client.get("/streamed") as answer:
                with pytest.raises(ClientPayloadError):
                    await answer.read()
            async with client.ws_connect("/socket") as talk:
                await talk.send_bytes(bytes(2000))
                assert (await talk.receive()).type in (WSMsgType.CLOSED, WSMsgType.ERROR)
                assert talk.close_code == 1006
    assert caplog.text.count("RecordTooLargeException") >= 2


async def test_a_client_that_goes_takes_nothing_back_and_leaves_nothing_behind() -> None:
    """With ``handler_cancellation``, as here, the handler is cancelled in the middle of its send."""
    gone = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        delivery = get_producer(request).send("t", await request.read())
        try:
            await delivery
        except asyncio.CancelledError:
            gone.set()
            raise
        return web.Response(status=201)

    faults = FaultScript()
    async with EmbeddedCluster(faults=faults) as cluster:
        app = make_app(kafka_context(bootstrap_servers=cluster.bootstrap_servers, **QUICK))
        app.add_routes([web.post("/slow", slow)])
        server = TestServer(app)  # it cancels handlers whose client has gone
        async with TestClient(server) as client:
            async with client.post("/sent", data=b"first"):
                pass
            held = faults.on(ApiKey.PRODUCE).delay_request(0.2)
            asked = asyncio.create_task(client.session.post(server.make_url("/slow"), data=b"value"))
            while not held.hits:  # noqa: ASYNC110 - the rule has no event
                await asyncio.sleep(0.01)
            asked.cancel()
            await gone.wait()
            await app[PRODUCER].flush()
            assert values(cluster) == [b"first", b"value"]
            assert all_memory_free(app[PRODUCER])


async def test_several_producers_of_one_application() -> None:
    async def both(request: web.Request) -> web.Response:
        clicks = get_producer(request, CLICKS)
        sender_of(clicks).crashed(RuntimeError("a bug"))
        return web.json_response([get_producer(request).config.client_id, clicks.config.client_id])

    async with EmbeddedCluster() as cluster:
        config = {**QUICK, "bootstrap_servers": cluster.bootstrap_servers}
        app = web.Application()
        app.cleanup_ctx.append(kafka_context(client_id="orders", **config))
        app.cleanup_ctx.append(kafka_context(key=CLICKS, client_id="clicks", **config))
        app.add_routes([*health_routes(keys=[PRODUCER, CLICKS]), web.get("/both", both)])
        async with client_of(app) as client:
            async with client.get("/both") as answer:
                assert await answer.json() == ["orders", "clicks"]
            async with client.get("/health/live") as live:
                assert (live.status, (await live.json())["why_not"]) == (503, ["clicks: producer-failed"])


async def test_tests_of_users_put_something_else_in_its_place() -> None:
    async with MockProducer() as producer:
        app = make_app(None)
        app[PRODUCER] = producer
        async with client_of(app) as client, client.post("/sent", data=b"value") as answer:
            assert answer.status == 201
        assert [record.value for record in producer.history] == [b"value"]


async def test_a_context_that_ends_before_the_producers_may_still_send() -> None:
    """Contexts end in reverse: one that comes after the producer's has it to the last."""
    async with EmbeddedCluster() as cluster:

        async def worker(app: web.Application) -> AsyncIterator[None]:
            yield
            await app[PRODUCER].send("t", b"the last")

        app = make_app(kafka_context(bootstrap_servers=cluster.bootstrap_servers, **QUICK))
        app.cleanup_ctx.append(worker)
        async with client_of(app):
            pass
        assert values(cluster) == [b"the last"]
