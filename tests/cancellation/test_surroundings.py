"""Cancels the producer's surroundings wherever they wait: the admin client, the reader, the embedded cluster, and the
drop-in class for aiokafka's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.broker import EmbeddedCluster
from aioproducer.compat.aiokafka import AIOKafkaProducer
from aioproducer.reader import PartitionReader
from tests.support.cancelling import ON_SOCKETS, WAYS, How, Run, Strike, everywhere, named
from tests.support.producing import make_producer
from tests.support.scripted_broker import ScriptedCluster

pytestmark = pytest.mark.timeout(120)

ADMIN: dict[str, Callable[[KafkaAdmin], Awaitable[Any]]] = {
    "list_topics": lambda admin: admin.list_topics(),
    "create_topics": lambda admin: admin.create_topics([NewTopic("new", 1)]),
}


@WAYS
@pytest.mark.parametrize("call", ADMIN)
def test_the_admin_client(how: How, run: Run, call: str) -> None:
    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1)
            async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
                await strike(ADMIN[call](admin))
                assert "t" in await admin.list_topics()

    assert everywhere(how, scenario, run) > 0


async def administer(servers: str) -> None:
    async with KafkaAdmin(bootstrap_servers=servers) as admin:
        await admin.list_topics()


async def read(servers: str) -> None:
    async with PartitionReader(servers, "t", 0) as reader:
        async for _ in reader.read_to_end():
            pass


async def compatible(servers: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait("t", b"v")
        await (await producer.send("t", b"v"))


WHOLE: dict[str, Callable[[str], Awaitable[None]]] = {"admin": administer, "reader": read, "aiokafka": compatible}


@WAYS
@pytest.mark.parametrize("whole", WHOLE)
def test_nothing_is_left_of_a_client_that_is_cancelled_from_its_start_to_its_end(
    how: How, run: Run, whole: str
) -> None:
    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1)
            async with make_producer(cluster.bootstrap_servers) as producer:
                await producer.send_many("t", [b"v"] * 3)
            await strike(WHOLE[whole](cluster.bootstrap_servers))

    assert everywhere(how, scenario, run) > 2


@WAYS
def test_reading(how: How, run: Run) -> None:
    """A reader that was cancelled goes on where it was."""

    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1)
            async with make_producer(cluster.bootstrap_servers, batch_size=0) as producer:
                await producer.send_many("t", [b"%d" % number for number in range(6)])
            seen: list[int] = []

            async with PartitionReader(cluster.bootstrap_servers, "t", 0, max_partition_fetch_bytes=100) as reader:

                async def take() -> None:
                    async for record in reader.read_to_end():
                        seen.append(record.offset)  # noqa: PERF401 - one by one: it may be cancelled in between

                await strike(take())
                await take()
            assert seen == list(range(6))

    assert everywhere(how, scenario, run) > 2


@pytest.mark.parametrize(("how", "run"), ON_SOCKETS, ids=named)
def test_the_embedded_cluster(how: How, run: Run) -> None:
    async def scenario(strike: Strike) -> None:
        async def work() -> None:
            async with EmbeddedCluster(nodes=2) as cluster:
                cluster.create_topic("t", 1)
                async with make_producer(cluster.bootstrap_servers) as producer:
                    await producer.send("t", b"v")

        await strike(work())

    assert everywhere(how, scenario, run) > 2
