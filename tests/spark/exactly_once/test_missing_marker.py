"""Epochs after the first, whose earlier markers are there or gone; with the embedded broker and without Spark."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.spark.exactly_once.marker import MarkerMismatchException, MissingMarkerException
from aioproducer.spark.exactly_once.prepared import Outcome
from aioproducer.spark.sink.sink_options import SinkOptions
from tests.spark.writes import epochs
from tests.spark.writes.epochs import attempt, attempts, commit, read

pytest.importorskip("pyarrow")


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        cluster.create_topic("markers", 1)
        yield cluster


def options(cluster: EmbeddedCluster, **more: str) -> SinkOptions:
    return epochs.options(cluster, topic="t", **{"allowMissingMarker": "false", **more})


async def write(chosen: SinkOptions, epoch: int, *partitions: int) -> list[Outcome]:
    """A row for each partition; it names both."""
    return await attempts(chosen, epoch, {partition: [f"{epoch}/{partition}"] for partition in partitions})


async def write_whole(chosen: SinkOptions, epoch: int, *partitions: int) -> None:
    await commit(chosen, epoch, await write(chosen, epoch, *partitions))


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
        match=r"^epoch 1 of query, partition 0, .*: group '.*-query-all' has no marker of epoch 0 at .* nothing was",
    ):
        await write(options(cluster, **more), 1, 0)
    assert cluster.log("t").log_end_offset == end
    await write_whole(options(cluster), 1, 0)
    await write_whole(options(cluster, **more, allowMissingMarker="true"), 2, 0)
    await write_whole(options(cluster, **more), 3, 0, 1)
    assert await read(cluster) == ["0/0", "1/0", "2/0", "3/0", "3/1"]


async def test_writes_whose_names_only_look_alike_have_their_own_markers(cluster: EmbeddedCluster) -> None:
    """What one has decided neither ends nor refuses what the other writes."""
    one = options(cluster, transactionalIdPrefix="a", writeId="b-query")
    other = options(cluster, transactionalIdPrefix="a-b", writeId="query")
    held = [await attempt(one, 0, 0, ["one"], write="b-query"), await attempt(other, 0, 0, ["other"], write="query")]
    for chosen, outcome, write in zip((one, other), held, ("b-query", "query"), strict=True):
        await commit(chosen, 0, [outcome], write=write)
    assert await read(cluster) == ["one", "other"]


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
    assert [one.prepared for one in await write(options(cluster), 1, 1)] == [None]
    with pytest.raises(MarkerMismatchException, match="epoch 1 was written already"):
        await write(options(cluster, allowMissingMarker="false"), 0, 0)
    assert await read(cluster) == ["0/0", "1/0"]
