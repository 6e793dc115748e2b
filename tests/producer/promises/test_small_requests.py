"""Brokers that take only small requests (``socket.request.max.bytes``) get every record, once and in order.

Such a broker closes the connection on a larger request, without an answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer import Delivery, KafkaProducer
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.support.scripted_broker import Drop, Exchange, ScriptedCluster, Step, answer, drop, edited
from tests.support.virtual_time import World, virtual

RECORDS = 3000


def takes_up_to(most: int) -> Step:
    """Closes the connection on a larger request. Answers take 50 ms, so that batches grow."""

    async def step(exchange: Exchange) -> None:
        if len(exchange.frame) > most:
            raise Drop("too large")
        await asyncio.sleep(0.05)
        await answer(exchange)

    return step


def unauthorized(response: Any) -> None:
    for partition in response.topics[0].partitions:
        partition.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def send_all(producer: KafkaProducer, partitions: int) -> list[Delivery]:
    value = bytes(100)
    return [
        await producer.enqueue("t", b"%d " % number + value, partition=number % partitions) for number in range(RECORDS)
    ]


def check_log(cluster: ScriptedCluster, partitions: int) -> None:
    """Every record is there once, and in the order of the calls."""
    for partition in range(partitions):
        numbers = [int((value or b"").split()[0]) for value in cluster.values("t", partition)]
        assert numbers == list(range(partition, RECORDS, partitions))


async def deliver_all(cluster: ScriptedCluster, partitions: int, **config: Any) -> None:
    """Sends all records and checks their deliveries and the log."""
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
        deliveries = await send_all(producer, partitions)
        await producer.flush()
    assert all(delivery.exception() is None for delivery in deliveries)
    check_log(cluster, partitions)


@pytest.mark.parametrize(
    "config", [{}, {"enable_idempotence": False}, {"compression_type": "gzip"}, {"batch_size": 100_000}]
)
@pytest.mark.parametrize(("partitions", "most"), [(1, 60_000), (1, 20_000), (6, 60_000), (60, 20_000)])
@virtual
async def test_every_record_is_delivered(world: World, partitions: int, most: int, config: dict[str, Any]) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", partitions)
        cluster.broker.always(ApiKey.PRODUCE, takes_up_to(most))
        config = {"delivery_timeout_ms": 60_000, **config}
        await deliver_all(cluster, partitions, **config)


@virtual
async def test_those_of_a_transaction_are_delivered(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 6)
        cluster.broker.always(ApiKey.PRODUCE, takes_up_to(60_000))
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                _ = await send_all(producer, 6)
        for partition in range(6):
            numbers = [
                int((value or b"").split()[0]) for value in cluster.values("t", partition) if value and b" " in value
            ]
            assert numbers == list(range(partition, RECORDS, 6))


@virtual
async def test_they_are_delivered_although_the_leader_may_not_tell_what_it_has(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, takes_up_to(60_000))
        cluster.broker.always(ApiKey.DESCRIBE_PRODUCERS, edited(unauthorized))
        await deliver_all(cluster, 1)


@pytest.mark.parametrize("may_tell", [True, False])
@virtual
async def test_a_batch_that_was_appended_before_each_end_is_not_appended_again(world: World, may_tell: bool) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, takes_up_to(60_000), *[drop(appended=True)] * 6)
        if not may_tell:
            cluster.broker.always(ApiKey.DESCRIBE_PRODUCERS, edited(unauthorized))
        await deliver_all(cluster, 1)


@virtual
async def test_it_is_logged_once_a_topic(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, takes_up_to(20_000))
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await send_all(producer, 1)
            await producer.flush()
    said = [record.getMessage() for record in caplog.records if "socket.request.max.bytes" in record.getMessage()]
    assert len(said) == 1
    assert "is larger than any request that its leader answers now" in said[0]
