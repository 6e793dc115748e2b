"""The choice of partitions, with the whole producer and brokers that are slow, silent, or in other racks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from aioproducer import (
    Delivery,
    DeliveryError,
    KafkaProducer,
    Outcome,
    RecordMetadata,
    RoundRobinPartitioner,
    TopicPartitions,
)
from aioproducer.broker import EmbeddedCluster, Faults, ReceivedRequest, RequestFault
from aioproducer.errors import ConfigException, IllegalArgumentException, PartitionerException
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.simulation.listening import listen_on_network
from tests.support.producing import all_memory_free
from tests.support.virtual_time import World, virtual

pytestmark = pytest.mark.timeout(20)


class Troubled(Faults):
    """Some nodes answer produce requests late, some hang up on everybody."""

    def __init__(self) -> None:
        self.late: dict[int, float] = {}
        self.hangs_up: set[int] = set()

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        if request.node_id in self.hangs_up:
            return RequestFault(lost=True)
        late = self.late.get(request.node_id, 0)
        return RequestFault(answered_after=late) if late and request.header.api_key == ApiKey.PRODUCE else None


@asynccontextmanager
async def running(faults: Faults, **config: Any) -> AsyncIterator[tuple[EmbeddedCluster, KafkaProducer[Any, Any]]]:
    """Three nodes, each of them leads one partition of ``t``: node n partition n."""
    async with EmbeddedCluster(3, faults=faults, racks=("a", "b", "b"), listen=listen_on_network) as cluster:
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
        faults.late[0] = 5.0  # a broker that answers sooner takes all that has waited, in a batch that has grown
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


# Partitioners of the user's own


def by_length(topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: bytes, partitions: TopicPartitions) -> int:
    return len(value_bytes) % len(partitions)


class Recording:
    """Notes what it is asked and that it is closed; answers with partitions 0, 1, 2, 0, …"""

    def __init__(self, refused: bytes = b"refused") -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.refused = refused
        self.closed = 0

    def partition(self, *arguments: Any) -> int:
        self.asked.append(arguments[:5])
        if arguments[4] == self.refused:
            raise LookupError("not this one")
        return (len(self.asked) - 1) % len(arguments[5])

    def close(self) -> None:
        self.closed += 1


def partitions(deliveries: list[RecordMetadata]) -> list[int]:
    return [metadata.partition for metadata in deliveries]


@pytest.mark.parametrize(
    "partitioner",
    [
        RoundRobinPartitioner,
        RoundRobinPartitioner(),
        "aioproducer.partitioners.RoundRobinPartitioner",
        "aioproducer:RoundRobinPartitioner",
        "org.apache.kafka.clients.producer.RoundRobinPartitioner",
    ],
    ids=["class", "instance", "path", "colon", "java"],
)
@virtual
async def test_a_partitioner_may_be_given_in_many_ways(world: World, partitioner: Any) -> None:
    async with running(Faults(), partitioner_class=partitioner) as (_, producer):
        sent = [await producer.send("t", b"v", key=b"the same") for _ in range(3)]
        assert sorted(partitions(sent)) == [0, 1, 2]


@virtual
async def test_a_plain_callable_will_do(world: World) -> None:
    async with running(Faults(), partitioner_class=by_length) as (_, producer):
        assert partitions([await producer.send("t", bytes(size), key=b"k") for size in range(6)]) == [0, 1, 2, 0, 1, 2]


@virtual
async def test_a_properties_file_of_kafkas_works_as_it_is(world: World) -> None:
    async with EmbeddedCluster(listen=listen_on_network) as cluster:
        cluster.create_topic("t", 4)
        text = f"bootstrap.servers={cluster.bootstrap_servers}\n"
        text += "partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner\n"
        async with KafkaProducer.from_config(text) as producer:
            sent = await asyncio.gather(*[producer.send("t", b"v") for _ in range(8)])
            assert Counter(partitions(sent)) == {0: 2, 1: 2, 2: 2, 3: 2}


@virtual
async def test_the_partitioner_is_not_called_for_a_record_with_a_partition(world: World) -> None:
    recording = Recording()
    async with running(Faults(), partitioner_class=recording) as (_, producer):
        assert (await producer.send("t", b"v", key=b"k", partition=2)).partition == 2
        assert recording.asked == []


@virtual
async def test_it_sees_key_and_value_before_and_after_they_are_serialized(world: World) -> None:
    recording = Recording()
    async with running(
        Faults(), partitioner_class=recording, key_serializer=str.encode, value_serializer=str.encode
    ) as (_, producer):
        await producer.send("t", "value", key="key")
        await (await producer.enqueue("t", "other"))
    assert recording.asked == [("t", "key", b"key", "value", b"value"), ("t", None, None, "other", b"other")]


@virtual
async def test_partitioners_run_in_order_when_metadata_arrives(world: World) -> None:
    recording = Recording()
    async with EmbeddedCluster(listen=listen_on_network) as cluster:
        cluster.create_topic("t", 3)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, partitioner_class=recording) as producer:
            deliveries = [producer.send("t", b"%d" % number) for number in range(6)]
            waiting = asyncio.create_task(producer.enqueue("t", b"6"))
            await asyncio.sleep(0)
            assert recording.asked == []
            assert partitions(await asyncio.gather(*deliveries)) == [0, 1, 2, 0, 1, 2]
            assert (await (await waiting)).partition == 0
    assert [value for *_, value in recording.asked] == [b"%d" % number for number in range(7)]


@pytest.mark.parametrize("known", [True, False])
@virtual
async def test_a_record_it_fails_for_ends_with_an_error_that_names_it(world: World, known: bool) -> None:
    async with EmbeddedCluster(listen=listen_on_network) as cluster:
        cluster.create_topic("t", 3)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, partitioner_class=Recording) as producer:
            if known:
                await producer.partitions_for("t")
            before, refused, after = (producer.send("t", value) for value in (b"before", b"refused", b"after"))
            with pytest.raises(PartitionerException, match=r"partitioner Recording failed .* not this one") as raised:
                await refused
            assert isinstance(raised.value, DeliveryError)
            assert raised.value.outcome is Outcome.NOT_SENT
            assert raised.value.topic_partition == ("t", -1)
            with pytest.raises(PartitionerException):
                await (await producer.enqueue("t", b"refused"))
            assert partitions([await before, await after]) == [0, 2]
            assert all_memory_free(producer)


@virtual
async def test_an_answer_that_is_no_partition_fails_the_record(world: World) -> None:
    async with running(Faults(), partitioner_class=lambda *_: -1) as (_, producer):
        with pytest.raises(IllegalArgumentException, match=r"lambda.* answered -1 .*3 partitions"):
            await producer.send("t", b"v")


@virtual
async def test_a_topic_with_fewer_partitions_by_now_is_chosen_for_again(world: World) -> None:
    asked: list[int] = []

    def last(*arguments: Any) -> int:
        asked.append(len(arguments[5]))
        return len(arguments[5]) - 1

    async with running(
        Faults(), partitioner_class=last, buffer_memory=1000, delivery_timeout_ms=31000, metadata_max_age_ms=500
    ) as (cluster, producer):
        await cluster.stop_node(2)
        _ = producer.send("t", bytes(900))  # takes all memory there is, and its leader is gone
        second = producer.send("t", bytes(900))
        await asyncio.sleep(0.1)
        cluster.delete_topic("t")
        cluster.create_topic("t", assignments=[[0], [1]])
        assert (await second).partition == 1
        assert asked == [3, 3, 2]


@virtual
async def test_it_may_send_records_itself(world: World) -> None:
    echoes: list[Delivery] = []

    def echo(topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, partitions: TopicPartitions) -> int:
        if topic == "t":
            echoes.append(producer.send("echo", value))
            echoes.append(producer.send("t", b"echo", partition=1))
        return 0

    async with EmbeddedCluster(listen=listen_on_network) as cluster:
        cluster.create_topic("t", 3)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, partitioner_class=echo) as producer:
            sent = [producer.send("t", b"v") for _ in range(3)]
            await asyncio.gather(*sent)
            assert len(echoes) == 6
            assert [metadata.topic for metadata in await asyncio.gather(*echoes)] == ["echo", "t"] * 3


@virtual
async def test_flush_within_it_is_refused(world: World) -> None:
    tasks: list[asyncio.Task[None]] = []

    def flushing(*_: Any) -> int:
        tasks.append(asyncio.create_task(producer.flush()))
        return 0

    async with running(Faults(), partitioner_class=flushing) as (_, producer):
        with pytest.raises(PartitionerException, match="IllegalStateException: flush"):
            await producer.send("t", b"v")
        assert not tasks


@virtual
async def test_it_is_closed_once_and_after_the_last_record(world: World) -> None:
    recording = Recording()
    async with running(Faults(), partitioner_class=recording) as (_, producer):
        _ = producer.send("t", b"v")
        assert recording.closed == 0
    assert recording.closed == 1
    await producer.close()
    assert recording.closed == 1


def test_a_value_that_is_no_partitioner_is_refused() -> None:
    wrongs: list[Any] = [5, object(), "no.such.module.Partitioner", "aioproducer.partitioners.Nothing"]
    for wrong in wrongs:
        with pytest.raises(ConfigException) as raised:
            KafkaProducer(bootstrap_servers="b:1", partitioner_class=wrong)
        assert raised.value.name == "partitioner.class"
