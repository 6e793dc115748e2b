"""Where records go, with the whole producer and brokers that are slow, silent, or in other racks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from aioproducer import Delivery, KafkaProducer
from aioproducer.broker import EmbeddedCluster, Faults, RequestFault
from aioproducer.protocol.api_keys import ApiKey
from aioproducer.protocol.headers import RequestHeader
from tests.support.virtual_time import World, virtual

pytestmark = pytest.mark.timeout(20)


class Troubled(Faults):
    """Some nodes answer produce requests late, some hang up on everybody."""

    def __init__(self) -> None:
        self.late: dict[int, float] = {}
        self.hangs_up: set[int] = set()

    def on_request(self, node_id: int, header: RequestHeader) -> RequestFault | None:
        if node_id in self.hangs_up:
            return RequestFault(lost=True)
        late = self.late.get(node_id, 0)
        return RequestFault(answered_after=late) if late and header.api_key == ApiKey.PRODUCE else None


@asynccontextmanager
async def running(faults: Faults, **config: Any) -> AsyncIterator[tuple[EmbeddedCluster, KafkaProducer]]:
    """Three nodes, each of them leads one partition of ``t``: node n partition n."""
    async with EmbeddedCluster(3, faults=faults, racks=("a", "b", "b")) as cluster:
        cluster.create_topic("t", assignments=[[node, (node + 1) % 3] for node in range(3)])
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            batch_size=1000,
            linger_ms=10,
            max_in_flight_requests_per_connection=1,
            **config,
        )
        producer._random = Random(5)
        async with producer:
            await producer.partitions_for("t")
            yield cluster, producer


async def spread(producer: KafkaProducer, batches: int) -> Counter[int]:
    """Sends batches of one record without a key, one each millisecond; how many each partition got."""
    deliveries: list[Delivery] = []
    for _ in range(batches):
        deliveries.append(await producer.enqueue("t", bytes(950)))
        await asyncio.sleep(0.001)
    return Counter(delivery._result.partition for delivery in deliveries)


@virtual
async def test_a_slow_broker_gets_less(world: World) -> None:
    faults = Troubled()
    async with running(faults) as (_, producer):
        counts = await spread(producer, 600)
        assert min(counts.values()) > 150
        faults.late[0] = 0.5
        counts = await spread(producer, 600)
        assert counts[0] < 0.1 * counts[1]
        assert counts[2] > 200
        faults.late.clear()
        await producer.flush()
        counts = await spread(producer, 600)
        assert min(counts.values()) > 150


@virtual
async def test_a_slow_broker_gets_its_share_when_it_is_not_adaptive(world: World) -> None:
    faults = Troubled()
    faults.late[0] = 0.5
    async with running(faults, partitioner_adaptive_partitioning_enable=False) as (_, producer):
        counts = await spread(producer, 600)
        assert min(counts.values()) > 150


@virtual
async def test_a_broker_that_takes_nothing_is_left_out_until_it_does(world: World) -> None:
    faults = Troubled()
    async with running(faults, partitioner_availability_timeout_ms=100) as (_, producer):
        await spread(producer, 100)
        faults.late[0] = 20
        assert (await spread(producer, 300))[0] > 0
        assert 0 not in await spread(producer, 600)
        faults.late.clear()
        await asyncio.sleep(25)
        assert (await spread(producer, 600))[0] > 150


@virtual
async def test_a_broker_that_hangs_up_on_everybody_is_left_out(world: World) -> None:
    faults = Troubled()
    async with running(faults, partitioner_availability_timeout_ms=100) as (_, producer):
        await spread(producer, 100)
        faults.hangs_up = {0}
        await spread(producer, 300)
        assert 0 not in await spread(producer, 600)
        faults.hangs_up = set()


@virtual
async def test_partitions_led_from_the_clients_rack_are_preferred(world: World) -> None:
    async with running(Faults(), partitioner_rack_aware=True, client_rack="b") as (cluster, producer):
        assert set(await spread(producer, 200)) == {1, 2}
        await cluster.stop_node(1)  # node 2 leads partition 1 now
        assert set(await spread(producer, 200)) == {1, 2}
        await cluster.stop_node(2)  # node 0 leads partition 2, nobody partition 1
        await spread(producer, 50)
        assert set(await spread(producer, 200)) == {0, 2}
        await cluster.start_node(2)
        await producer.flush()
        await asyncio.sleep(1)
        await spread(producer, 50)
        assert set(await spread(producer, 50)) == {1}


@virtual
async def test_a_rack_without_leaders_is_no_preference(world: World) -> None:
    async with running(Faults(), partitioner_rack_aware=True, client_rack="z") as (_, producer):
        assert set(await spread(producer, 200)) == {0, 1, 2}
