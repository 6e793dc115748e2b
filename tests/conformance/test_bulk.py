"""Bulk sends, judged by Kafka's own console consumer."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer import BulkResult, KafkaProducer, ProducerRecord
from aioproducer.testing.delivered import assert_delivered
from aioproducer.testing.kafka.apache_kafka import ApacheKafka

from .test_console_tools import CODECS, PARTITIONS, varied_records
from .topics import create_topic

pa = pytest.importorskip("pyarrow")


async def send_many(producer: KafkaProducer, topic: str, records: list[ProducerRecord]) -> BulkResult:
    return await producer.send_many(
        topic,
        [record.value for record in records],
        keys=[record.key for record in records],
        partitions=[record.partition for record in records],
        timestamps_ms=[record.timestamp_ms for record in records],
        headers=[record.headers for record in records],
    )


async def test_every_record_of_a_bulk_send_is_there_once_and_in_order(kafka: ApacheKafka) -> None:
    """All codecs, one producer after the other, into one topic."""
    await create_topic(kafka, "bulk", partitions=PARTITIONS)
    sent: list[ProducerRecord] = []
    for codec in CODECS:
        records = varied_records("bulk", codec) * 5
        async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, compression_type=codec) as producer:
            result = await send_many(producer, "bulk", records)
        assert (result.delivered, result.errors) == (len(records), [])
        ends = await kafka.tools.get_offsets("bulk")
        assert {partition: offsets.last + 1 for (_, partition), offsets in result.offsets.items()} == ends
        sent += records
    consumed = await kafka.tools.console_consumer("bulk", max_messages=len(sent))
    assert_delivered(sent, consumed)


async def test_of_transactional_bulk_sends_the_committed_ones_are_read(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "bulk-transactions", partitions=PARTITIONS)
    expected: list[ProducerRecord] = []
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="bulk") as producer:
        await producer.init_transactions()
        for number in range(9):
            records = [ProducerRecord("bulk-transactions", b"%d %d" % (number, i), b"%d" % i) for i in range(3000)]
            await producer.begin_transaction()
            assert (await send_many(producer, "bulk-transactions", records)).delivered == len(records)
            if number % 3:
                await producer.commit_transaction()
                expected += records
            else:
                await producer.abort_transaction()
    consumed = await kafka.tools.console_consumer(
        "bulk-transactions", isolation_level="read_committed", max_messages=len(expected)
    )
    assert_delivered(expected, consumed, gaps=True)


def table_of(records: list[ProducerRecord]) -> Any:
    headers = [None if record.headers is None else list(record.headers) for record in records]
    return pa.table(
        {
            "value": pa.array([record.value for record in records], pa.large_binary()),
            "key": pa.array([record.key for record in records], pa.binary()).dictionary_encode(),
            "partition": pa.array([record.partition for record in records], pa.int32()),
            "time": pa.array([record.timestamp_ms for record in records], pa.timestamp("ms")),
            "headers": pa.array(headers, pa.map_(pa.string(), pa.binary())),
        }
    )


async def test_every_row_of_a_table_is_there_once_and_in_order(kafka: ApacheKafka) -> None:
    """All codecs, one producer after the other, into one topic; chunks of several sizes."""
    await create_topic(kafka, "table", partitions=PARTITIONS)
    sent: list[ProducerRecord] = []
    for codec in CODECS:
        records = varied_records("table", codec) * 5
        table = pa.concat_tables([table_of(records[:700]), table_of(records[700:701]), table_of(records[701:])])
        async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, compression_type=codec) as producer:
            result = await producer.send_table(
                "table", table, value="value", key="key", partition="partition", timestamp="time", headers="headers"
            )
        assert (result.delivered, result.errors) == (len(records), [])
        sent += records
    consumed = await kafka.tools.console_consumer("table", max_messages=len(sent))
    assert_delivered(sent, consumed)


async def test_of_transactional_tables_the_committed_ones_are_read(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "table-transactions", partitions=PARTITIONS)
    expected: list[ProducerRecord] = []
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="table") as producer:
        await producer.init_transactions()
        for number in range(6):
            records = [ProducerRecord("table-transactions", b"%d %d" % (number, i), b"%d" % i) for i in range(3000)]
            await producer.begin_transaction()
            result = await producer.send_table("table-transactions", table_of(records), value="value", key="key")
            assert result.delivered == len(records)
            if number % 3:
                await producer.commit_transaction()
                expected += records
            else:
                await producer.abort_transaction()
    consumed = await kafka.tools.console_consumer(
        "table-transactions", isolation_level="read_committed", max_messages=len(expected)
    )
    assert_delivered(expected, consumed, gaps=True)
