"""The producer's records, judged by Kafka's console consumer and by Kafka's log tool on its disks."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import pytest

from aioproducer import KafkaProducer, ProducerRecord, TimestampType, wait_all
from aioproducer.testing.delivered import assert_delivered
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.kafka.kafka_output import LoggedBatch

from .topics import create_topic

CODECS: Any = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 3


def varied_records(topic: str, name: str) -> list[ProducerRecord]:
    """Keys that repeat, none, and empty; values of many sizes, none, and empty; headers; chosen places and times."""
    keyed = [ProducerRecord(topic, b"%b %d" % (name.encode(), n) * (n % 50), b"key %d" % (n % 17)) for n in range(300)]
    return [
        *keyed,
        *(ProducerRecord(topic, b"no key %d, %b" % (n, name.encode())) for n in range(100)),
        ProducerRecord(topic, None, b"tombstone " + name.encode()),
        ProducerRecord(topic, None, None, headers=[("only", name.encode())]),
        ProducerRecord(
            topic, b"", b"", headers=[("a", None), ("a", b""), ("ü", bytes(range(256))), ("by", name.encode())]
        ),
        ProducerRecord(topic, b"placed " + name.encode(), b"anywhere", partition=2),
        ProducerRecord(topic, b"dated " + name.encode(), timestamp_ms=1_234_567_890_123),
        ProducerRecord(topic, b"big" * 100_000, name.encode()),
    ]


async def logged(kafka: ApacheKafka, topic: str) -> list[list[LoggedBatch]]:
    """The batches of each partition."""
    directories = [kafka.data_directory(1) / f"{topic}-{partition}" for partition in range(PARTITIONS)]
    return [await kafka.tools.dump_log(directory) for directory in directories]


async def test_every_record_is_there_once_and_in_order(kafka: ApacheKafka) -> None:
    """All codecs, one producer after the other, into one topic."""
    await create_topic(kafka, "varied", partitions=PARTITIONS)
    sent, metadata = [], []
    for codec in CODECS:
        records = varied_records("varied", codec)
        async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, compression_type=codec) as producer:
            deliveries = [producer.send(record) for record in records]
            await wait_all(deliveries)
        sent += records
        metadata += [delivery.result() for delivery in deliveries]

    ends = await kafka.tools.get_offsets("varied")
    assert sum(ends.values()) == len(sent)
    consumed = await kafka.tools.console_consumer("varied", max_messages=len(sent))
    assert_delivered(sent, consumed, metadata=metadata)

    partitions = await logged(kafka, "varied")
    batches = [batch for partition in partitions for batch in partition]
    assert all(batch.valid and not batch.is_transactional and not batch.is_control for batch in batches)
    assert {batch.codec for batch in batches} == set(CODECS)
    for partition in partitions:
        assert_sequences_follow(partition)


def assert_sequences_follow(batches: list[LoggedBatch]) -> None:
    """Each producer's sequences in one partition begin at 0 and leave nothing out, under one epoch."""
    expected: dict[tuple[int, int], int] = defaultdict(int)
    for batch in batches:
        identity = (batch.producer_id, batch.producer_epoch)
        assert batch.producer_id >= 0
        assert batch.base_sequence == expected[identity]
        assert batch.last_sequence == batch.base_sequence + batch.count - 1
        expected[identity] = batch.last_sequence + 1


async def test_keys_go_where_kafka_puts_them(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "keys", partitions=13)
    keys = [f"{'kéy' * (n % 5)}{n}" for n in range(200)]
    await kafka.tools.console_producer("keys", [(key, "theirs") for key in keys])
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        await wait_all([producer.send("keys", b"ours", key=key.encode()) for key in keys])
    places: dict[bytes | None, dict[bytes | None, int]] = {b"theirs": {}, b"ours": {}}
    for record in await kafka.tools.console_consumer("keys", max_messages=2 * len(keys)):
        places[record.value][record.key] = record.partition
    assert len(places[b"ours"]) == len(keys)
    assert places[b"ours"] == places[b"theirs"]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
async def test_without_idempotence(kafka: ApacheKafka, acks: Any) -> None:
    topic = f"acks-{acks}"
    await create_topic(kafka, topic)
    sent = [ProducerRecord(topic, b"%d" % n, b"key") for n in range(1000)]
    async with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, acks=acks, enable_idempotence=False, batch_size=500
    ) as producer:
        deliveries = [producer.send(record) for record in sent]
        await wait_all(deliveries)
    consumed = await kafka.tools.console_consumer(topic, max_messages=len(sent))
    assert_delivered(sent, consumed, metadata=[delivery.result() for delivery in deliveries])
    batches = await kafka.tools.dump_log(kafka.data_directory(1) / f"{topic}-0")
    assert {(batch.producer_id, batch.base_sequence) for batch in batches} == {(-1, -1)}


async def test_the_brokers_timestamps(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "dated", configs={"message.timestamp.type": "LogAppendTime"})
    record = ProducerRecord("dated", b"v", timestamp_ms=5)
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        metadata = await producer.send(record)
    (consumed,) = await kafka.tools.console_consumer("dated", max_messages=1)
    assert consumed.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert_delivered([record], [consumed], metadata=[metadata])


async def test_topics_are_made_when_first_sent_to(kafka: ApacheKafka) -> None:
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        metadata = await producer.send("made", b"v")
    assert (metadata.partition, metadata.offset) == (0, 0)
    assert len(await kafka.tools.console_consumer("made", max_messages=1)) == 1


async def test_many_tasks_that_await_each_record(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "tasks", partitions=PARTITIONS)
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:

        async def one_by_one(task: int) -> list[ProducerRecord]:
            records = [ProducerRecord("tasks", b"%d %d" % (task, n), b"task %d" % task) for n in range(10)]
            for record in records:
                await producer.send(record)
            return records

        sent = [record for records in await asyncio.gather(*map(one_by_one, range(100))) for record in records]
    assert sum((await kafka.tools.get_offsets("tasks")).values()) == len(sent)
    consumed = await kafka.tools.console_consumer("tasks", max_messages=len(sent))
    by_key: dict[bytes | None, list[bytes | None]] = {}
    for record in sorted(consumed, key=lambda record: (record.partition, record.offset)):
        by_key.setdefault(record.key, []).append(record.value)
    assert by_key == {b"task %d" % task: [b"%d %d" % (task, n) for n in range(10)] for task in range(100)}
