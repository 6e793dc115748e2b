"""Epochs of one write, with the embedded broker and without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.spark.exactly_once.epoch_commit import commit_epoch
from aioproducer.spark.exactly_once.prepared import Outcome
from aioproducer.spark.exactly_once.write_once import write_once
from aioproducer.spark.sink.sink_options import SinkOptions
from aioproducer.spark.sink.task import Task
from tests.spark.foreign import values

COLUMNS = {"value": "value"}


def options_of(servers: str, **more: str) -> SinkOptions:
    """All rows go to topic t, unless ``markerTopic`` is given: then each names its topic."""
    given = {
        "kafka.bootstrap.servers": servers,
        "kafka.retry.backoff.ms": "5",
        "kafka.linger.ms": "0",
        "deliveryGuarantee": "exactly-once",
        "allowMissingMarker": "true",  # tests begin with any epoch
    }
    topic = {} if "markerTopic" in more else {"topic": "t"}
    return SinkOptions.of({**given, **topic, **more}, streaming="writeId" not in more)


def options(cluster: EmbeddedCluster, **more: str) -> SinkOptions:
    return options_of(cluster.bootstrap_servers, **more)


def batches(rows: Sequence[str], size: int = 8) -> Iterator[Any]:
    import pyarrow as pa

    for begin in range(0, len(rows), size):
        yield pa.record_batch({"value": list(rows[begin : begin + size])})


async def attempt(
    chosen: SinkOptions,
    epoch: int,
    partition: int,
    rows: Iterator[Any] | Sequence[str],
    *,
    number: int = 0,
    write: str = "query",
) -> Outcome:
    """An attempt of a task; ``number`` is Spark's."""
    given = batches(rows) if isinstance(rows, Sequence) else rows
    return await write_once(chosen, COLUMNS, Task(write, epoch, partition, number), given)


async def attempts(chosen: SinkOptions, epoch: int, parts: Mapping[int, Sequence[str]]) -> list[Outcome]:
    """One for each partition."""
    return [await attempt(chosen, epoch, partition, rows) for partition, rows in parts.items()]


async def commit(chosen: SinkOptions, epoch: int, outcomes: Sequence[Outcome], *, write: str = "query") -> None:
    await commit_epoch(chosen, write, epoch, outcomes)


async def write_epoch(chosen: SinkOptions, epoch: int, *parts: Sequence[str]) -> None:
    """Whole, with these rows in its partitions."""
    await commit(chosen, epoch, await attempts(chosen, epoch, dict(enumerate(parts))))


async def read(cluster: EmbeddedCluster, topic: str = "t") -> list[str]:
    return await asyncio.to_thread(values, cluster.bootstrap_servers, topic)


async def open_transactions(cluster: EmbeddedCluster) -> list[str]:
    """The ids of those that have not ended."""
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        return await admin.list_transactions(states=["Ongoing"])
