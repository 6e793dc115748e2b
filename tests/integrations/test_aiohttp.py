from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalStateException
from aioproducer.integrations.aiohttp import PRODUCER, error_middleware, get_producer, health_routes, kafka_context
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import QUICK

pytestmark = pytest.mark.usefixtures("no_leaks")

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
async def asking(app: web.Application) -> AsyncIterator[Client]:
    async with TestClient(TestServer(app)) as client:
        yield client


def values(cluster: EmbeddedCluster) -> list[bytes | None]:
    return [record.value for record in cluster.log("t").records()]


async def test_a_request_is_answered_when_its_record_is_in_the_log() -> None:
    async with EmbeddedCluster() as cluster:
        app = make_app(kafka_context(bootstrap_servers=cluster.bootstrap_servers, **QUICK))
        async with asking(app) as client:
            async with client.post("/sent", data=b"value") as answer:
                assert (answer.status, await answer.json()) == (201, 0)
            assert values(cluster) == [b"value"]
            async with client.get("/health/ready") as ready:
                assert (ready.status, await ready.json()) == (200, {"ok": True, "why_not": [], "findings": []})


async def test_what_was_accepted_is_delivered_when_the_service_ends() -> None:
    slow = {**QUICK, "linger_ms": 60_000, "delivery_timeout_ms": 120_000}
    async with EmbeddedCluster() as cluster:
        async with asking(make_app(kafka_context(bootstrap_servers=cluster.bootstrap_servers, **slow))) as client:
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
        async with asking(app) as client, client.post("/part/sent", data=b"value") as answer:
            assert answer.status == 201
            assert app[PRODUCER].config.bootstrap_servers == (cluster.bootstrap_servers,)


async def test_errors_are_answered() -> None:
    async with EmbeddedCluster() as cluster:
        context = kafka_context(bootstrap_servers=cluster.bootstrap_servers, max_request_size=1000, **QUICK)
        async with asking(make_app(context)) as client:
            async with client.post("/sent", data=bytes(2000)) as answer:
                assert (answer.status, (await answer.json())["error"]) == (413, "RecordTooLargeException")
            async with client.post("/sent", params={"topic": ""}, data=b"value") as answer:
                assert answer.status == 500


async def test_without_a_broker_it_starts_is_not_ready_and_says_when_to_come_again() -> None:
    async with EmbeddedCluster() as cluster:
        servers = cluster.bootstrap_servers
    async with asking(make_app(kafka_context(bootstrap_servers=servers, **{**QUICK, "max_block_ms": 50}))) as client:
        async with client.get("/health/ready") as ready:
            assert (ready.status, (await ready.json())["why_not"]) == (503, ["no broker was reached yet"])
        async with client.get("/health/live") as live:
            assert live.status == 200
        async with client.post("/sent", data=b"value") as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "3")


async def test_who_forgot_it_is_told() -> None:
    seen = []

    async def handler(request: web.Request) -> web.Response:
        with pytest.raises(IllegalStateException, match=r"cleanup_ctx\.append\(kafka_context") as raised:
            get_producer(request)
        seen.append(raised)
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/", handler)])
    async with asking(app) as client, client.get("/"):
        assert len(seen) == 1
