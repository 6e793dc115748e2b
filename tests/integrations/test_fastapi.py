from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, BackgroundTasks, Depends, FastAPI, WebSocket
from fastapi.requests import HTTPConnection, Request
from fastapi.responses import StreamingResponse

from aioproducer import DeliveryError, KafkaError, KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import BufferExhaustedException, IllegalStateException
from aioproducer.integrations.fastapi import (
    Producer,
    add_error_handlers,
    get_producer,
    health_router,
    kafka_lifespan,
    producer_named,
)
from aioproducer.protocol.api_key import ApiKey
from tests.integrations.client_of import client_of
from tests.support.inside import sender_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import QUICK
from tests.support.scripted_broker import ScriptedCluster, never
from tests.support.virtual_time import World, virtual

pytestmark = pytest.mark.usefixtures("no_leaks")


def make_app(lifespan: Any) -> FastAPI:
    app = FastAPI(lifespan=lifespan)
    app.include_router(health_router())
    add_error_handlers(app, retry_after=3)

    @app.post("/sent", status_code=201)
    async def send(request: Request, producer: Producer, topic: str = "t") -> int:
        return (await producer.send(topic, await request.body())).offset

    @app.post("/taken", status_code=202)
    async def take(request: Request, producer: Producer) -> None:
        _ = await producer.enqueue("t", await request.body())

    return app


def values(cluster: EmbeddedCluster) -> list[bytes | None]:
    return [record.value for record in cluster.log("t").records()]


async def test_a_request_is_answered_when_its_record_is_in_the_log() -> None:
    async with EmbeddedCluster() as cluster:
        app = make_app(kafka_lifespan(bootstrap_servers=cluster.bootstrap_servers, **QUICK))
        async with client_of(app) as client:
            answer = await client.post("/sent", content=b"value")
            assert (answer.status_code, answer.json()) == (201, 0)
            assert values(cluster) == [b"value"]


async def test_accepted_records_are_delivered_when_the_service_ends() -> None:
    slow = {**QUICK, "linger_ms": 60_000, "delivery_timeout_ms": 120_000}
    async with EmbeddedCluster() as cluster:
        async with client_of(make_app(kafka_lifespan(bootstrap_servers=cluster.bootstrap_servers, **slow))) as client:
            for number in range(3):
                assert (await client.post("/taken", content=b"%d" % number)).status_code == 202
            assert values(cluster) == []
        assert values(cluster) == [b"0", b"1", b"2"]


async def test_the_end_waits_for_close_timeout_at_most(caplog: pytest.LogCaptureFixture) -> None:
    slow = {**QUICK, "linger_ms": 0, "delivery_timeout_ms": 120_000, "request_timeout_ms": 60_000}
    async with EmbeddedCluster() as cluster:
        lifespan = kafka_lifespan(close_timeout=0, bootstrap_servers=cluster.bootstrap_servers, **slow)
        async with client_of(make_app(lifespan)) as client:
            await client.post("/sent", content=b"first")
            await cluster.stop_node(0)
            await client.post("/taken", content=b"lost")
    assert "1 record was not delivered" in caplog.text


@pytest.mark.parametrize(("options", "seconds"), [({}, 20), ({"close_timeout": 3}, 3), ({"close_timeout": None}, 120)])
@virtual
async def test_the_end_comes_within_the_time_that_kubernetes_gives(
    world: World, options: dict[str, Any], seconds: int
) -> None:
    """… whatever delivery.timeout.ms is, unless close_timeout says otherwise."""
    loop = asyncio.get_running_loop()
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, never())
        lifespan = kafka_lifespan(bootstrap_servers=cluster.bootstrap_servers, **options)
        async with lifespan(FastAPI()) as state:
            delivery = await state["kafka_producer"].enqueue("t", b"v")
            began = loop.time()
        assert seconds - 1 < loop.time() - began < seconds + 1
        assert isinstance(delivery.exception(), DeliveryError)


async def test_it_is_a_part_of_a_lifespan_of_the_users_own() -> None:
    seen = []
    async with EmbeddedCluster() as cluster:

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
            async with kafka_lifespan(bootstrap_servers=cluster.bootstrap_servers, **QUICK)(app) as kafka:
                yield {"database": "mine", **kafka}

        app = make_app(lifespan)

        @app.get("/mine")
        async def mine(request: Request, producer: Producer) -> None:
            seen.append((request.state.database, producer.config.bootstrap_servers))

        async with client_of(app) as client:
            await client.get("/mine")
        assert seen == [("mine", (cluster.bootstrap_servers,))]


async def test_a_wrong_config_keeps_the_service_from_starting() -> None:
    lifespan = kafka_lifespan(bootstrap_servers="b:1", linger_msec=5)  # type: ignore[call-arg]
    with pytest.raises(KafkaError, match=r"linger\.msec"):
        async with client_of(make_app(lifespan)):
            pytest.fail("it has started")


async def test_without_a_broker_it_starts_is_not_ready_and_says_when_to_come_again() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{nobody.getsockname()[1]}"
        config = {**QUICK, "max_block_ms": 50}
        async with client_of(make_app(kafka_lifespan(bootstrap_servers=servers, **config))) as client:
            ready = await client.get("/health/ready")
            assert ready.status_code == 503
            assert "no broker was reached yet" in ready.json()["why_not"]
            assert (await client.get("/health/live")).status_code == 200
            answer = await client.post("/sent", content=b"value")
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "3")
            assert answer.json()["outcome"] == "not_sent"
            assert servers not in answer.text


async def test_errors_are_answered() -> None:
    async with EmbeddedCluster() as cluster:
        config = {**QUICK, "value_serializer": lambda value: json.dumps(json.loads(value)).encode()}
        lifespan = kafka_lifespan(bootstrap_servers=cluster.bootstrap_servers, max_request_size=1000, **config)
        async with client_of(make_app(lifespan)) as client:
            assert (await client.post("/sent", content=b'"%b"' % bytes(2000).hex().encode())).status_code == 413
            unserializable = await client.post("/sent", content=b"{")
            assert (unserializable.status_code, unserializable.json()["error"]) == (422, "SerializationException")
            assert (await client.post("/sent", params={"topic": ""}, content=b"1")).status_code == 500


async def test_a_reached_broker_makes_it_ready_and_a_failed_producer_not_even_live() -> None:
    async with EmbeddedCluster() as cluster:
        app = make_app(kafka_lifespan(bootstrap_servers=cluster.bootstrap_servers, **QUICK))

        @app.post("/break")
        async def break_it(producer: Producer) -> None:
            sender_of(producer).crashed(RuntimeError("a bug"))

        async with client_of(app) as client:
            await client.post("/sent", content=b"value")
            ready = await client.get("/health/ready")
            assert (ready.status_code, ready.json()) == (200, {"ok": True, "why_not": [], "findings": []})
            await client.post("/break")
            for path in ("/health/ready", "/health/live"):
                answer = await client.get(path)
                assert answer.status_code == 503
                assert answer.json()["findings"][0]["metric"] == "producer-failed"


async def test_tests_of_users_put_something_else_in_its_place() -> None:
    app = make_app(None)
    async with EmbeddedCluster() as cluster, KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        app.dependency_overrides[get_producer] = lambda: producer
        async with client_of(app) as client:
            assert (await client.post("/sent", content=b"value")).status_code == 201
            assert (await client.get("/health/ready")).status_code == 200


async def test_websockets_have_it_too_and_a_missing_one_is_an_error() -> None:
    producer = KafkaProducer(bootstrap_servers="b:1")
    connection = HTTPConnection({"type": "websocket", "state": {"kafka_producer": producer}})
    assert await get_producer(connection) is producer
    with pytest.raises(IllegalStateException, match=r"FastAPI\(lifespan=kafka_lifespan"):
        await get_producer(HTTPConnection({"type": "http", "state": {}}))


class Conversation:
    """One ASGI connection, message by message."""

    def __init__(self, app: FastAPI, path: str, state: Any, extensions: dict[str, Any] | None = None) -> None:
        self.received: list[dict[str, Any]] = []
        self._to_come: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._app = app
        self._scope = {
            "type": "websocket",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [],
            "subprotocols": [],
            "state": dict(state),
            "extensions": {} if extensions is None else extensions,
        }

    async def hold(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self._to_come.put_nowait(message)

        async def send(message: Any) -> None:
            self.received.append(message)

        await self._app(self._scope, self._to_come.get, send)


async def test_a_websocket_is_closed_with_what_its_record_ended_with() -> None:
    async with EmbeddedCluster() as cluster:
        app = make_app(kafka_lifespan(bootstrap_servers=cluster.bootstrap_servers, max_request_size=1000, **QUICK))

        @app.websocket("/stream")
        async def stream(socket: WebSocket, producer: Producer) -> None:
            await socket.accept()
            while True:
                await producer.send("t", await socket.receive_bytes())

        async with app.router.lifespan_context(app) as state:
            talk = Conversation(app, "/stream", state)
            connect: dict[str, Any] = {"type": "websocket.connect"}
            values_to_send = [{"type": "websocket.receive", "bytes": value} for value in (b"value", bytes(2000))]
            await talk.hold(connect, *values_to_send)
        assert [message["type"] for message in talk.received] == ["websocket.accept", "websocket.close"]
        assert (talk.received[1]["code"], talk.received[1]["reason"]) == (1009, "RecordTooLargeException")
        assert values(cluster) == [b"value"]


@pytest.mark.parametrize("extensions", [{"websocket.http.response": {}}, {}], ids=["refusals", "no refusals"])
async def test_a_websocket_that_is_not_accepted_yet_is_refused(extensions: dict[str, Any]) -> None:
    app = make_app(None)

    @app.websocket("/stream")
    async def stream(socket: WebSocket) -> None:
        raise BufferExhaustedException("full")

    talk = Conversation(app, "/stream", {}, extensions)
    await talk.hold({"type": "websocket.connect"})
    if extensions:
        assert talk.received[0]["status"] == 503
        assert (b"retry-after", b"3") in talk.received[0]["headers"]
    else:
        assert [message["type"] for message in talk.received] == ["websocket.close"]


async def test_several_producers_of_one_service() -> None:
    seen = []
    async with EmbeddedCluster() as cluster:
        config = {**QUICK, "bootstrap_servers": cluster.bootstrap_servers}

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
            async with (
                kafka_lifespan(client_id="orders", **config)(app) as orders,
                kafka_lifespan(name="clicks", client_id="clicks", **config)(app) as clicks,
            ):
                yield {**orders, **clicks}

        app = FastAPI(lifespan=lifespan)
        app.include_router(health_router(names=["kafka_producer", "clicks"]))

        @app.post("/both")
        async def both(orders: Producer, clicks: Annotated[KafkaProducer, Depends(producer_named("clicks"))]) -> None:
            seen.append((orders.config.client_id, clicks.config.client_id))
            sender_of(clicks).crashed(RuntimeError("a bug"))

        async with client_of(app) as client:
            await client.post("/both")
            assert seen == [("orders", "clicks")]
            live = await client.get("/health/live")
            assert (live.status_code, live.json()["why_not"]) == (503, ["clicks: producer-failed"])
            assert [finding["client_id"] for finding in live.json()["findings"]] == ["clicks"]


async def test_it_becomes_ready_by_itself_when_the_broker_comes() -> None:
    """Nobody sends requests to a service that is not ready, so it may not take one to become ready."""
    async with EmbeddedCluster() as cluster:
        servers = cluster.bootstrap_servers
        await cluster.stop_node(0)
        async with client_of(make_app(kafka_lifespan(bootstrap_servers=servers, **QUICK))) as client:
            assert (await client.get("/health/ready")).status_code == 503
            await cluster.start_node(0)
            while (await client.get("/health/ready")).status_code != 200:  # noqa: ASYNC110 - the service has no event
                await asyncio.sleep(0.01)


async def test_routers_and_mounted_applications_have_it() -> None:
    async with EmbeddedCluster() as cluster:
        app = make_app(kafka_lifespan(bootstrap_servers=cluster.bootstrap_servers, max_request_size=1000, **QUICK))
        router = APIRouter(prefix="/v1")
        mounted = make_app(None)

        @router.post("/sent")
        async def send(request: Request, producer: Producer) -> int:
            return (await producer.send("t", await request.body())).offset

        app.include_router(router)
        app.mount("/mounted", mounted)
        async with client_of(app) as client:
            for path in ("/v1/sent", "/mounted/sent"):
                assert (await client.post(path, content=b"value")).is_success
                assert (await client.post(path, content=bytes(2000))).status_code == 413


async def test_after_the_answer_and_while_it_is_streamed_records_are_sent() -> None:
    async with EmbeddedCluster() as cluster:
        app = make_app(kafka_lifespan(bootstrap_servers=cluster.bootstrap_servers, **QUICK))

        async def send(producer: KafkaProducer, value: bytes) -> None:
            await producer.send("t", value)

        @app.post("/later")
        async def later(tasks: BackgroundTasks, producer: Producer) -> None:
            tasks.add_task(send, producer, b"later")

        @app.get("/streamed")
        async def streamed(producer: Producer) -> StreamingResponse:
            async def offsets() -> AsyncIterator[bytes]:
                for number in range(3):
                    yield b"%d\n" % (await producer.send("t", b"%d" % number)).offset

            return StreamingResponse(offsets())

        async with client_of(app) as client:
            await client.post("/later")
            assert (await client.get("/streamed")).content == b"1\n2\n3\n"
        assert values(cluster) == [b"later", b"0", b"1", b"2"]


@virtual
async def test_a_client_that_goes_in_the_middle_of_a_stream(world: World) -> None:
    """Starlette cancels the response in a scope of anyio, wherever it waits."""
    outcomes = set()
    for patience in range(0, 60, 2):
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1)
            app = FastAPI()

            @app.get("/streamed")
            async def streamed(request: Request) -> StreamingResponse:
                producer = request.scope["producer"]

                async def offsets() -> AsyncIterator[bytes]:
                    for number in range(3):
                        yield b"%d" % (await producer.send("t", b"%d" % number)).offset

                return StreamingResponse(offsets())

            sent: list[bytes] = []

            async def goes(patience: int = patience) -> dict[str, Any]:
                await asyncio.sleep(patience / 1000)
                return {"type": "http.disconnect"}

            async def take(message: Any, sent: list[bytes] = sent) -> None:
                await asyncio.sleep(0)
                if message.get("body"):
                    sent.append(message["body"])

            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=5) as producer:
                await app({**REQUEST, "producer": producer}, goes, take)
                await producer.flush()
                there = values(cluster)
                assert (await producer.send("t", b"after")).offset == len(there)
        assert there == [b"0", b"1", b"2"][: len(there)]
        assert sent == [b"0", b"1", b"2"][: len(sent)]
        assert len(there) - 1 <= len(sent) <= len(there)
        outcomes.add((len(sent), len(there)))
    assert {(0, 1), (1, 2), (3, 3)} <= outcomes


REQUEST: dict[str, Any] = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "http_version": "1.1",
    "method": "GET",
    "path": "/streamed",
    "raw_path": b"/streamed",
    "query_string": b"",
    "headers": [],
}
