"""Leaders move, topics are created anew, brokers throttle, all under load: nothing is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest

from aioproducer import Delivery, KafkaProducer, ProducerRecord, TimestampType, wait_all
from aioproducer.admin import TopicDescription
from aioproducer.testing.delivered import assert_delivered
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from tests.conformance.topics import create_topic, describe_topic

PARTITIONS = 6
CODECS = ("none", "gzip", "zstd")
MOVES = 2
"""Each node has led each partition by then."""


class Load:
    """Keyed records to one topic, some hundred a second, for as long as it runs."""

    def __init__(self, servers: str, topic: str, **config: Any) -> None:
        self.topic = topic
        self.sent: list[ProducerRecord] = []
        self.deliveries: list[Delivery] = []
        self.producer = KafkaProducer(bootstrap_servers=servers, batch_size=2000, **config)
        self._enough = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Everything has ended when it is left."""
        async with self.producer:
            flow = asyncio.create_task(self._flow())
            try:
                yield
            finally:
                self._enough.set()
                await flow

    async def _flow(self) -> None:
        while not self._enough.is_set():
            number = len(self.sent)
            self.sent.append(ProducerRecord(self.topic, b"%d" % number, b"key %d" % (number % 50)))
            self.deliveries.append(await self.producer.enqueue(self.sent[-1]))
            await asyncio.sleep(0.002)

    async def delivered(self, at_least: int = 0) -> int:
        """Returns when everything sent by then has ended, which is so many records; sending goes on."""
        while True:
            sent = tuple(self.deliveries)
            await wait_all(sent)
            if len(sent) >= at_least:
                return len(sent)
            await asyncio.sleep(0)

    async def assert_all_there(self, kafka: ApacheKafka) -> None:
        metadata = [delivery.result() for delivery in self.deliveries]
        assert sum((await kafka.tools.get_offsets(self.topic)).values()) == len(self.sent)
        consumed = await kafka.tools.console_consumer(self.topic, max_messages=len(self.sent), timeout=120)
        assert_delivered(self.sent, consumed, metadata=metadata)


def led_by(leaders: list[int], topic: TopicDescription) -> bool:
    return [info.leader for info in topic.partitions] == leaders


async def test_leaders_move_under_load(kafka_clusters: ApacheKafka) -> None:
    """Every partition is led by each node in turn, under a producer for each of several codecs."""
    tools = kafka_clusters.tools
    loads = [Load(kafka_clusters.bootstrap_servers, f"moved-{codec}", compression_type=codec) for codec in CODECS]
    for load in loads:
        safe = {"min.insync.replicas": "2"}
        await create_topic(kafka_clusters, load.topic, partitions=PARTITIONS, replication_factor=3, configs=safe)
    described = [await describe_topic(kafka_clusters, load.topic) for load in loads]
    placed = {topic.name: {info.partition: info.replicas for info in topic.partitions} for topic in described}
    async with AsyncExitStack() as stack:
        for load in loads:
            await stack.enter_async_context(load.running())
        for _ in range(MOVES):
            placed = {
                topic: {partition: (*nodes[1:], nodes[0]) for partition, nodes in of.items()}
                for topic, of in placed.items()
            }
            await tools.move_leaders(placed)
            for load in loads:
                await load.delivered()
        for topic, of in placed.items():
            leaders = [nodes[0] for _, nodes in sorted(of.items())]
            await describe_topic(kafka_clusters, topic, partial(led_by, leaders))
    for load in loads:
        await load.assert_all_there(kafka_clusters)


async def test_a_topic_created_anew_under_load(kafka_clusters: ApacheKafka) -> None:
    """What is sent once the new topic is known is in it; what went to the old one is not, and nothing is doubled."""
    tools = kafka_clusters.tools
    load = Load(kafka_clusters.bootstrap_servers, "anew")
    await create_topic(kafka_clusters, "anew", partitions=PARTITIONS, replication_factor=3)
    async with load.running():
        before = await load.delivered(at_least=500)
        first_id = (await describe_topic(kafka_clusters, "anew")).topic_id
        await tools.delete_topic("anew")
        await tools.create_topic("anew", partitions=PARTITIONS, replication_factor=3)
        await describe_topic(kafka_clusters, "anew", lambda now: now.topic_id != first_id)
        after = len(load.sent)
        await load.delivered()
    assert len(load.sent) > after > before

    metadata = [delivery.result() for delivery in load.deliveries]
    there = sum((await tools.get_offsets("anew")).values())
    consumed = await tools.console_consumer("anew", max_messages=there, timeout=120)
    numbers = [int(record.value or b"") for record in consumed]
    assert min(numbers) >= before
    assert set(range(after, len(load.sent))) <= set(numbers)
    # Of each partition there is everything from some record on: the old topic's end, where the order goes on.
    found = defaultdict(list)
    for record in sorted(consumed, key=lambda record: (record.partition, record.offset)):
        found[record.partition].append(int(record.value or b""))
    for partition, values in found.items():
        of_partition = [number for number, one in enumerate(metadata) if one.partition == partition]
        assert values == of_partition[-len(values) :]
    kept = sorted(numbers)
    assert_delivered([load.sent[n] for n in kept], consumed, metadata=[metadata[n] for n in kept])


@pytest.mark.parametrize("codec", CODECS)
async def test_the_brokers_time_under_load(kafka: ApacheKafka, codec: str) -> None:
    topic = f"append-time-{codec}"
    await create_topic(kafka, topic, partitions=3, configs={"message.timestamp.type": "LogAppendTime"})
    load = Load(kafka.bootstrap_servers, topic, compression_type=codec)
    async with load.running():
        await load.delivered(at_least=300)
    assert {delivery.result().timestamp_type for delivery in load.deliveries} == {TimestampType.LOG_APPEND_TIME}
    await load.assert_all_there(kafka)


async def test_a_quota_throttles_and_loses_nothing(kafka: ApacheKafka) -> None:
    """The first seconds' worth goes through at once; what is beyond it has to wait, and it shows."""
    quota = 20_000
    await create_topic(kafka, "quota", partitions=3)
    await kafka.tools.set_quota("slow", {"producer_byte_rate": quota})
    sent = [ProducerRecord("quota", b"%d " % n + bytes(500), b"key %d" % (n % 20)) for n in range(600)]
    loop = asyncio.get_running_loop()
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, client_id="slow") as producer:
        began = loop.time()
        deliveries = [await producer.enqueue(record) for record in sent]
        await wait_all(deliveries)
        took = loop.time() - began
        throttled = producer.metrics()["produce-throttle-time-max"]
    assert throttled > 0
    # Kafka looks at the last eleven seconds: that much may come at once.
    assert took > (sum(len(record.value or b"") for record in sent) - 11 * quota) / quota / 2
    assert sum((await kafka.tools.get_offsets("quota")).values()) == len(sent)
    consumed = await kafka.tools.console_consumer("quota", max_messages=len(sent))
    assert_delivered(sent, consumed, metadata=[delivery.result() for delivery in deliveries])
