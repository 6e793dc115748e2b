"""Batches that are too large for the topic: real Kafka refuses them, and what it takes in their place is the same."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer import KafkaProducer, ProducerRecord
from aioproducer.errors import RecordTooLargeException
from aioproducer.testing.delivered import assert_delivered
from aioproducer.testing.kafka.apache_kafka import ApacheKafka

from .topics import create_topic

LARGEST = 3000
RECORDS = 2000
IN_ORDER: dict[str, dict[str, Any]] = {
    "idempotent": {},
    "acks-1": {"enable_idempotence": False, "acks": "1", "max_in_flight_requests_per_connection": 1},
}


@pytest.mark.parametrize("mode", IN_ORDER)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_batches_too_large_for_the_topic_are_split(kafka_431: ApacheKafka, codec: str, mode: str) -> None:
    topic = f"large-{codec}-{mode}"
    tools = kafka_431.tools
    await create_topic(kafka_431, topic, partitions=1, configs={"max.message.bytes": str(LARGEST)})
    # Text that is compressed well, then numbers that are not: the estimate is wrong when they come.
    values = [b"%d: the same again and again" % n for n in range(RECORDS // 2)]
    values += [b"%d:" % n + bytes((n * 7919 + i * i * 31) % 251 for i in range(60)) for n in range(RECORDS // 2)]
    sent = [ProducerRecord(topic, value) for value in values]
    config = {"compression_type": codec, "linger_ms": 20, **IN_ORDER[mode]}
    async with KafkaProducer(bootstrap_servers=kafka_431.bootstrap_servers, **config) as producer:
        deliveries = [await producer.enqueue(record) for record in sent]
        await producer.flush()
        metadata = [delivery.result() for delivery in deliveries]
        assert producer.metrics()["batch-split-total"] > 0
    assert [one.offset for one in metadata] == list(range(RECORDS))

    consumed = await tools.console_consumer(topic, max_messages=RECORDS)
    assert_delivered(sent, consumed, metadata=metadata)
    batches = await tools.dump_log(kafka_431.data_directory(1) / f"{topic}-0")
    assert all(batch.valid and batch.size <= LARGEST for batch in batches)
    assert {batch.codec for batch in batches} == {codec}
    if mode == "idempotent":
        expected = 0
        for batch in batches:
            assert (batch.producer_epoch, batch.base_sequence) == (0, expected)
            expected = batch.last_sequence + 1


async def test_a_record_too_large_for_the_topic_fails_alone(kafka_431: ApacheKafka) -> None:
    topic = "one-too-large"
    await create_topic(kafka_431, topic, partitions=1, configs={"max.message.bytes": str(LARGEST)})
    async with KafkaProducer(bootstrap_servers=kafka_431.bootstrap_servers, linger_ms=50) as producer:
        before, large, after = (producer.send(topic, bytes(size)) for size in (100, LARGEST, 100))
        assert (await before).offset == 0
        with pytest.raises(RecordTooLargeException):
            _ = await large
        assert (await after).offset == 1
