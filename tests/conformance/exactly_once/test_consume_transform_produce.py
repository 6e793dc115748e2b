"""Consume, transform, produce, exactly once: aiokafka's consumers in a group, offsets committed in our transactions."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer

from aioproducer import ConsumerGroupMetadata, KafkaProducer, TopicPartition, wait_all
from aioproducer.errors import TransactionAbortableException
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from tests.conformance.topics import assert_committed, create_topic

PARTITIONS = 4
RECORDS = 3000
GROUP = "transformers"


class Transformer:
    """Copies one topic to another, partition by partition, until the group's offsets are at its end.

    ``copied`` holds what was read in transactions that are known to be committed.
    """

    def __init__(self, kafka: ApacheKafka, name: str, copied: set[tuple[int, int]]) -> None:
        self.aborted = 0
        self._kafka = kafka
        self._name = name
        self._copied = copied

    async def run(self) -> None:
        async with KafkaProducer(
            bootstrap_servers=self._kafka.bootstrap_servers, transactional_id=self._name, linger_ms=0
        ) as producer:
            await producer.init_transactions()
            consumer = AIOKafkaConsumer(
                "in",
                bootstrap_servers=self._kafka.bootstrap_servers,
                group_id=GROUP,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
            )
            await consumer.start()
            try:
                while not await self._all_committed(consumer):
                    await self._copy(consumer, producer)
            finally:
                await consumer.stop()

    async def _all_committed(self, consumer: AIOKafkaConsumer) -> bool:
        """Also of what was committed by one that was cancelled within its commit."""
        offsets = [await consumer.committed(TopicPartition("in", partition)) for partition in range(PARTITIONS)]
        return sum(offset or 0 for offset in offsets) == RECORDS

    async def _copy(self, consumer: AIOKafkaConsumer, producer: KafkaProducer) -> None:
        read = await consumer.getmany(timeout_ms=100, max_records=40)
        coordinator = consumer._coordinator
        place = ConsumerGroupMetadata(GROUP, coordinator.generation, coordinator.member_id)
        if not read:
            return
        try:
            async with producer.transaction():
                for (_, partition), messages in read.items():
                    for message in messages:
                        _ = await producer.enqueue("out", message.value, partition=partition)
                offsets = {TopicPartition(*where): messages[-1].offset + 1 for where, messages in read.items()}
                await producer.send_offsets_to_transaction(offsets, place)
        except TransactionAbortableException:
            # The group has moved on without us. What was read is read again, by whoever has the partitions now.
            self.aborted += 1
            for where in consumer.assignment():
                consumer.seek(where, await consumer.committed(where) or 0)
        else:
            self._copied.update((message.partition, message.offset) for some in read.values() for message in some)


async def test_exactly_once_across_a_rebalance_and_a_restart(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "in", partitions=PARTITIONS)
    await create_topic(kafka, "out", partitions=PARTITIONS)
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        await wait_all([await producer.enqueue("in", b"%d" % i, partition=i % PARTITIONS) for i in range(RECORDS)])
    copied: set[tuple[int, int]] = set()

    async def until(records: int) -> None:
        while len(copied) < records:  # noqa: ASYNC110 - nobody would set an event in the middle of its work
            await asyncio.sleep(0.01)

    first = asyncio.create_task(Transformer(kafka, "a", copied).run())
    await until(RECORDS // 10)
    second = asyncio.create_task(Transformer(kafka, "b", copied).run())
    await until(RECORDS // 3)
    first.cancel()
    await asyncio.wait([first])
    await until(RECORDS // 2)
    restarted = asyncio.create_task(Transformer(kafka, "a", copied).run())
    await asyncio.gather(second, restarted)

    copies = {first: [b"%d" % i for i in range(first, RECORDS, PARTITIONS)] for first in range(PARTITIONS)}
    await assert_committed(kafka, "out", PARTITIONS, copies)
