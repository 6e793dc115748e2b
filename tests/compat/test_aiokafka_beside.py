"""What programs give to aiokafka's class has the same effect on the class that takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from aioproducer.compat.aiokafka import AIOKafkaProducer
from tests.compat.clusters import a_cluster
from tests.support.leaks import no_leaks as no_leaks

aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")

pytestmark = [
    pytest.mark.usefixtures("no_leaks"),
    pytest.mark.timeout(20),
    pytest.mark.parametrize("producer_class", [aiokafka.AIOKafkaProducer, AIOKafkaProducer], ids=["aiokafka", "ours"]),
]

NOW: Any = 1_700_000_000_000.7


async def kind_of_error(call: Callable[[], Awaitable[Any]]) -> type[BaseException]:
    with pytest.raises(Exception) as raised:
        await call()
    return raised.type


@pytest.mark.parametrize(
    "arguments",
    [
        {"linger_ms": 0.5},
        {"linger_ms": True},
        {"retry_backoff_ms": 50.0},
        {"metadata_max_age_ms": 300e3},
        {"connections_max_idle_ms": 540e3},
        {"max_request_size": 1e6},
        {"request_timeout_ms": 5000, "linger_ms": Fraction(1, 2)},
        {"acks": True},
        {"acks": False},
        {"enable_idempotence": 1},
    ],
    ids=str,
)
async def test_numbers_of_any_type(producer_class: Any, arguments: dict[str, Any]) -> None:
    async with (
        a_cluster(1) as cluster,
        producer_class(bootstrap_servers=cluster.bootstrap_servers, **arguments) as producer,
    ):
        metadata = await producer.send_and_wait("t", b"value")
        assert (metadata is None) == (arguments.get("acks") is False)
        await producer.flush()
    assert cluster.values("t") == [b"value"]


@pytest.mark.parametrize("servers", ["{},", ", {} ,", ["{}", ""]], ids=str)
async def test_blank_servers_are_skipped(producer_class: Any, servers: Any) -> None:
    async with a_cluster(1) as cluster:
        here = cluster.bootstrap_servers
        given = servers.format(here) if isinstance(servers, str) else [server.format(here) for server in servers]
        async with producer_class(bootstrap_servers=given) as producer:
            await producer.send_and_wait("t", b"value")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"linger": 5}, TypeError),
        ({"linger_ms": "5"}, TypeError),
        ({"linger_ms": None}, TypeError),
        ({"request_timeout_ms": "5"}, TypeError),
        ({"retry_backoff_ms": "5"}, TypeError),
        ({"security_protocol": None}, ValueError),
        ({"acks": "1"}, ValueError),
    ],
    ids=str,
)
async def test_an_impossible_argument(
    producer_class: Any, arguments: dict[str, Any], error: type[BaseException]
) -> None:
    with pytest.raises(error):
        producer_class(**arguments)


@pytest.mark.parametrize("timestamp", [NOW, Decimal("5.5"), 0.9, -0.5, True], ids=str)
async def test_the_fraction_of_a_timestamp_is_dropped(producer_class: Any, timestamp: Any) -> None:
    async with a_cluster(1) as cluster, producer_class(bootstrap_servers=cluster.bootstrap_servers) as producer:
        metadata = await producer.send_and_wait("t", b"sent", timestamp_ms=timestamp)
        batch = producer.create_batch()
        appended = batch.append(key=None, value=b"in a batch", timestamp=timestamp)
        await (await producer.send_batch(batch, "t", partition=0))
        whole = int(timestamp)
        assert (metadata.timestamp, appended.timestamp) == (whole, whole)
        assert [record.timestamp_ms for record in cluster.log("t").records()] == [whole, whole]


@pytest.mark.parametrize(
    ("timestamp", "error"),
    [("5", TypeError), (float("nan"), ValueError), (float("inf"), OverflowError)],
    ids=str,
)
async def test_a_timestamp_that_is_no_number(producer_class: Any, timestamp: Any, error: type[BaseException]) -> None:
    async with a_cluster(1) as cluster, producer_class(bootstrap_servers=cluster.bootstrap_servers) as producer:
        assert await kind_of_error(lambda: producer.send("t", b"value", timestamp_ms=timestamp)) is error
        batch = producer.create_batch()
        with pytest.raises(error):
            batch.append(key=None, value=b"value", timestamp=timestamp)
        assert batch.record_count() == 0


@pytest.mark.parametrize("headers", [{"a": b"b"}, {"ab": b"c"}, {"abc": b"d"}, "ab", [5], 5], ids=str)
async def test_headers_that_are_no_pairs_are_a_type_error(producer_class: Any, headers: Any) -> None:
    async with a_cluster(1) as cluster, producer_class(bootstrap_servers=cluster.bootstrap_servers) as producer:
        assert await kind_of_error(lambda: producer.send("t", b"value", headers=headers)) is TypeError
        batch = producer.create_batch()
        with pytest.raises(TypeError):
            batch.append(key=None, value=b"value", timestamp=None, headers=headers)
        await producer.send_and_wait("t", b"none", headers={})
    assert cluster.values("t") == [b"none"]


async def test_a_future_knows_its_loop(producer_class: Any) -> None:
    async with a_cluster(1) as cluster, producer_class(bootstrap_servers=cluster.bootstrap_servers) as producer:
        future = await producer.send("t", b"value")
        loop = asyncio.get_running_loop()
        assert future.get_loop() is future._loop is loop
        await asyncio.wait([future])
        assert future.get_loop() is future._loop is loop


async def test_the_loops_exception_handler_is_told_of_an_unclosed_producer(producer_class: Any) -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    async with a_cluster(1) as cluster:
        producer = producer_class(bootstrap_servers=cluster.bootstrap_servers)
        await producer.start()
        await asyncio.sleep(0)
        ours = producer_class is AIOKafkaProducer
        underneath = [producer.kafka_producer] if ours else [producer._sender, producer.client]
        held = [producer]
        del producer
        with pytest.warns(ResourceWarning, match="Unclosed AIOKafkaProducer"):
            held.clear()
        (context,) = told
        assert context["message"] == "Unclosed AIOKafkaProducer"
        assert type(context.pop("producer")) is producer_class
        for part in underneath:
            await part.close()
