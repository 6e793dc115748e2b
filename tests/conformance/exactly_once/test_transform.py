"""From topic to topic on real Kafka: exactly once across a rebalance, a cancelled and a restarted instance."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from aioproducer import KafkaProducer, TopicPartition, wait_all
from aioproducer.admin import KafkaAdmin
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.transform import Output, Transform
from tests.conformance.topics import assert_committed, create_topic

PARTITIONS = 4
RECORDS = 3000
GROUP = "transforms"


async def copy(message: Any, output: Output) -> None:
    if int(message.value) % 7 == 0:
        await asyncio.sleep(0.001)  # a later one may be ready earlier
    output.send("transformed", message.value, partition=message.partition)


async def run(kafka: ApacheKafka, name: str) -> None:
    servers = kafka.bootstrap_servers
    async with (
        KafkaAdmin(bootstrap_servers=servers) as admin,
        KafkaProducer(bootstrap_servers=servers, transactional_id=f"transform-{name}") as producer,
    ):
        await producer.init_transactions()
        consumer = AIOKafkaConsumer(
            "to-transform",
            bootstrap_servers=servers,
            group_id=GROUP,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        try:
            await consumer.start()
            await Transform(consumer, producer, copy, group_id=GROUP, admin=admin, max_records=60).run()
        finally:
            await consumer.stop()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a cancelled aiokafka leaves a connection that it is making
async def test_exactly_once_with_instances_that_come_and_go(kafka: ApacheKafka) -> None:
    for topic in ("to-transform", "transformed"):
        await create_topic(kafka, topic, partitions=PARTITIONS)
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        await wait_all(
            [await producer.enqueue("to-transform", b"%d" % i, partition=i % PARTITIONS) for i in range(RECORDS)]
        )
    partitions = [TopicPartition("to-transform", partition) for partition in range(PARTITIONS)]
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:

        async def until(records: int) -> None:
            async with asyncio.timeout(120):
                while True:
                    committed = await admin.list_consumer_group_offsets(GROUP, partitions, require_stable=True)
                    if sum(one.offset for one in committed.values() if one is not None) >= records:
                        return
                    await asyncio.sleep(0.1)

        first = asyncio.create_task(run(kafka, "a"))
        await until(RECORDS // 10)
        second = asyncio.create_task(run(kafka, "b"))
        await until(RECORDS // 3)
        first.cancel()
        await asyncio.wait([first])
        restarted = asyncio.create_task(run(kafka, "a"))
        await until(RECORDS)
    for task in (second, restarted):
        task.cancel()
    await asyncio.wait([second, restarted])
    copies = {first: [b"%d" % i for i in range(first, RECORDS, PARTITIONS)] for first in range(PARTITIONS)}
    await assert_committed(kafka, "transformed", PARTITIONS, copies)
    gc.collect()  # not in the test after this one
