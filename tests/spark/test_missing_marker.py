"""Epochs after the first, whose earlier markers are there or gone; with the embedded broker and without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.spark.epoch_commit import Done, commit_epoch
from aioproducer.spark.exactly_once import write_once
from aioproducer.spark.marker import MarkerMismatchException, MissingMarkerException
from aioproducer.spark.sink_options import SinkOptions
from aioproducer.spark.task import Task

from .foreign import values

pa = pytest.importorskip("pyarrow")


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        cluster.create_topic("markers", 1)
        yield cluster


def options(cluster: EmbeddedCluster, **more: str) -> SinkOptions:
    """A stream's, unless there is a ``writeId``."""
    given = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "kafka.retry.backoff.ms": "5",
        "topic": "t",
        "deliveryGuarantee": "exactly-once",
    }
    return SinkOptions.of({**given, **more}, streaming="writeId" not in more)


async def write(chosen: SinkOptions, epoch: int, *partitions: int) -> list[Done]:
    """A row for each partition; it names both."""
    done: list[Done] = []
    for partition in partitions:
        task = Task("w", epoch, partition, run="run" if chosen.write_id is None else "")
        rows = iter([pa.record_batch({"value": [f"{epoch}/{partition}"]})])
        done.append((task, await write_once(chosen, {"value": "value"}, task, rows)))
    return done


async def write_whole(chosen: SinkOptions, epoch: int, *partitions: int) -> None:
    await commit_epoch(chosen, await write(chosen, epoch, *partitions))


async def read(cluster: EmbeddedCluster) -> list[str]:
    return await asyncio.to_thread(values, cluster.bootstrap_servers, "t")


async def test_epochs_of_a_stream_follow_each_other_with_any_partitions(cluster: EmbeddedCluster) -> None:
    stream = options(cluster)
    for epoch, partitions in enumerate([(0,), (0, 1, 2), (0,), (0, 1), (0, 1, 2)]):
        await write_whole(stream, epoch, *partitions)
    assert await read(cluster) == ["0/0", "1/0", "1/1", "1/2", "2/0", "3/0", "3/1", "4/0", "4/1", "4/2"]


@pytest.mark.parametrize("more", [{"transactionalIdPrefix": "another"}, {"markerTopic": "markers"}])
async def test_other_names_than_before_are_refused_unless_an_option_allows_it(
    cluster: EmbeddedCluster, more: dict[str, str]
) -> None:
    await write_whole(options(cluster), 0, 0)
    await write(options(cluster), 1, 0)
    end = cluster.log("t").log_end_offset
    with pytest.raises(
        MissingMarkerException,
        match=r"^epoch 1 of w, partition 0, attempt 0: group '.*-w-all' has no marker of epoch 0 at .* nothing was",
    ):
        await write(options(cluster, **more), 1, 0)
    assert cluster.log("t").log_end_offset == end
    await write_whole(options(cluster), 1, 0)
    await write_whole(options(cluster, **more, allowMissingMarker="true"), 2, 0)
    await write_whole(options(cluster, **more), 3, 0, 1)
    assert await read(cluster) == ["0/0", "1/0", "2/0", "3/0", "3/1"]


async def test_a_stream_whose_last_epochs_were_written_otherwise_is_refused(cluster: EmbeddedCluster) -> None:
    """There are markers, but none of the epoch before: under another prefix that one, too, may have been begun."""
    await write_whole(options(cluster), 0, 0)
    with pytest.raises(MissingMarkerException, match="no marker of epoch 4"):
        await write(options(cluster), 5, 0)


async def test_a_batch_begins_with_epoch_0_and_may_leave_some_out(cluster: EmbeddedCluster) -> None:
    batch = options(cluster, writeId="w")
    with pytest.raises(MissingMarkerException, match="no marker of any earlier epoch"):
        await write(batch, 7, 0)
    await write_whole(batch, 0, 0)
    await write_whole(batch, 7, 0, 1)
    await write_whole(batch, 9, 0, 1, 2)
    assert await read(cluster) == ["0/0", "7/0", "7/1", "9/0", "9/1", "9/2"]


async def test_a_new_partition_of_an_epoch_that_is_whole_writes_nothing(cluster: EmbeddedCluster) -> None:
    for epoch in range(2):
        await write_whole(options(cluster), epoch, 0)
    with pytest.raises(MarkerMismatchException, match=r"epoch was committed with 1 rows .* in 1 partitions, and this"):
        await write(options(cluster), 1, 1)
    with pytest.raises(MarkerMismatchException, match="epoch 1 was written already"):
        await write(options(cluster, allowMissingMarker="false"), 0, 0)
    assert await read(cluster) == ["0/0", "1/0"]
