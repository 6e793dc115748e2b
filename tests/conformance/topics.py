"""Prepares and inspects topics of real Kafka for tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

from aioproducer import KafkaProducer
from aioproducer.admin import KafkaAdmin, NewTopic, TopicDescription
from aioproducer.errors import UnknownTopicOrPartitionException
from aioproducer.testing.kafka.apache_kafka import ApacheKafka

END = b"the end"


async def create_topic(
    kafka: ApacheKafka,
    topic: str,
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Without Kafka's own tool, which is a JVM to start, and judges nothing here."""
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        await admin.create_topic(NewTopic(topic, partitions, replication_factor, configs or {}))


async def describe_topic(
    kafka: ApacheKafka, topic: str, until: Callable[[TopicDescription], bool] = lambda described: True
) -> TopicDescription:
    """Likewise; brokers learn of a change a little later, so the request is repeated until they have it."""
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin, asyncio.timeout(30):
        while True:
            with contextlib.suppress(UnknownTopicOrPartitionException):
                if until(described := await admin.describe_topic(topic)):
                    return described
            await asyncio.sleep(0.1)


async def assert_committed(
    kafka: ApacheKafka, topic: str, partitions: int, expected: Mapping[int, Sequence[bytes | None]]
) -> None:
    """Kafka's own read_committed consumer sees these values, by partition, and no others.

    Behind them each partition gets one more, so that the consumer knows when it has seen all: what is to be told by
    silence takes seconds. It would not come behind a transaction that was left open.
    """
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for partition in range(partitions):
            await producer.send(topic, END, partition=partition)
    count = sum(map(len, expected.values())) + partitions
    consumed = await kafka.tools.console_consumer(
        topic, isolation_level="read_committed", max_messages=count, timeout=120
    )
    found: dict[int, list[bytes | None]] = {partition: [] for partition in range(partitions)}
    for record in consumed:
        found[record.partition].append(record.value)
    assert found == {partition: [*expected.get(partition, ()), END] for partition in range(partitions)}
