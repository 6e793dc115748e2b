"""What the sink for Spark builds on, on real Kafka: attempts of tasks, and a foreign reader. Needs no Spark."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from aioproducer.errors import KafkaError
from aioproducer.spark.epoch_commit import Done, commit_epoch
from aioproducer.spark.exactly_once import write_once
from aioproducer.spark.marker import MarkerMismatchException
from aioproducer.spark.sink_options import SinkOptions
from aioproducer.spark.task import Task
from aioproducer.testing.apache_kafka import ApacheKafka
from tests.spark.foreign import values

from .topics import create_topic

pytestmark = pytest.mark.conformance

pa = pytest.importorskip("pyarrow")

ROWS = [f"row {number}" for number in range(3000)]


def batches(rows: list[str]) -> Iterator[Any]:
    for begin in range(0, len(rows), 1000):
        yield pa.record_batch({"value": rows[begin : begin + 1000]})


async def test_each_row_is_read_once_whatever_becomes_of_its_task(kafka: ApacheKafka) -> None:
    topic = "spark-exactly-once"
    await create_topic(kafka, topic, partitions=2)
    options = SinkOptions.of(
        {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": topic,
            "deliveryGuarantee": "exactly-once",
            "allowMissingMarker": "true",
        },
        streaming=True,
    )

    async def write(partition: int, rows: Iterator[Any], run: str = "first") -> Done:
        task = Task("query", 7, partition, run=run)
        return task, await write_once(options, {"value": "value"}, task, rows)

    def broken() -> Iterator[Any]:
        yield from batches(ROWS[:2000])
        raise LookupError("the task fails")

    half, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Any]:
        yield from batches(ROWS[:2000])
        half.set()
        assert go_on.wait(60)
        yield from batches(ROWS[2000:])

    with pytest.raises(LookupError):
        await write(0, broken())
    lost = asyncio.ensure_future(write(0, slow()))
    assert await asyncio.to_thread(half.wait, 60)
    await write(0, batches(ROWS))
    go_on.set()
    with pytest.raises(KafkaError, match=r"(?i)fenced|newer producer"):
        await lost
    done = [await write(0, batches(ROWS[::-1]), "second"), await write(1, batches(["the other task's"]), "second")]
    with pytest.raises(MarkerMismatchException, match="with 3000 rows"):
        await write(0, batches(ROWS[1:]), "second")
    for _ in range(2):
        await commit_epoch(options, done)
    with pytest.raises(MarkerMismatchException, match=r"3001 rows .* in 2 partitions"):
        await commit_epoch(options, done[:1])
    read = await asyncio.to_thread(values, kafka.bootstrap_servers, topic, 2)
    assert sorted(read) == sorted([*ROWS, "the other task's"])
