"""The driver's part of exactly-once, with the embedded broker and without Spark."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.spark.epoch_commit import Done, commit_epoch
from aioproducer.spark.exactly_once import WHOLE, name_of, write_once
from aioproducer.spark.marker import Marker, MarkerMismatchException
from aioproducer.spark.sink_options import SinkOptions
from aioproducer.spark.task import Task

pa = pytest.importorskip("pyarrow")


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        yield cluster


def options(cluster: EmbeddedCluster) -> SinkOptions:
    given = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "kafka.retry.backoff.ms": "5",
        "topic": "t",
        "deliveryGuarantee": "exactly-once",
        "allowMissingMarker": "true",  # tests begin with any epoch
    }
    return SinkOptions.of(given, streaming=True)


async def write(
    cluster: EmbeddedCluster, epoch: int, parts: dict[int, list[str]], run: str
) -> list[tuple[Task, Marker]]:
    done: list[Done] = []
    for partition, rows in parts.items():
        task = Task("query", epoch, partition, run=run)
        batches = iter([pa.record_batch({"value": rows})])
        done.append((task, await write_once(options(cluster), {"value": "value"}, task, batches)))
    return done


async def test_an_epoch_is_committed_once_and_compared_when_it_is_run_again(cluster: EmbeddedCluster) -> None:
    done = await write(cluster, 5, {0: ["a", "b"], 1: ["c"]}, "first run")
    await commit_epoch(options(cluster), done)
    assert cluster.committed_offsets(name_of(options(cluster), "query", WHOLE)) == {("t", 0): 5}
    await commit_epoch(options(cluster), await write(cluster, 5, {1: ["c"], 0: ["a", "b"]}, "second run"))
    more = await write(cluster, 5, {2: ["d"]}, "third run")
    with pytest.raises(
        MarkerMismatchException,
        match=r"epoch 5 of query: it was committed with 3 rows .* in 2 partitions, and has 4 rows",
    ):
        await commit_epoch(options(cluster), [*done, *more])


async def test_an_epoch_after_which_others_were_committed_is_refused(cluster: EmbeddedCluster) -> None:
    await commit_epoch(options(cluster), await write(cluster, 5, {0: ["a"]}, "run"))
    with pytest.raises(MarkerMismatchException, match="epoch 5 was written already"):
        await commit_epoch(options(cluster), [(Task("query", 4, 1), Marker(4, 0, "0"))])


@pytest.mark.parametrize("before", [False, True])
async def test_a_task_of_an_attempt_with_more_partitions_is_found(cluster: EmbeddedCluster, before: bool) -> None:
    """Of three tasks the last one alone had committed when the driver was lost; now there are two."""
    if before:
        await commit_epoch(options(cluster), await write(cluster, 4, {0: [], 1: [], 2: []}, "first run"))
    await write(cluster, 5, {2: ["c"]}, "first run")
    done = await write(cluster, 5, {0: ["a", "c"], 1: ["b"]}, "second run")
    with pytest.raises(
        MarkerMismatchException,
        match=r"epoch 5 of query: partition 2 was committed with 1 rows .* and there are only 2 partitions now",
    ):
        await commit_epoch(options(cluster), done)


async def test_fewer_partitions_than_the_epoch_before_are_no_mismatch(cluster: EmbeddedCluster) -> None:
    await commit_epoch(options(cluster), await write(cluster, 4, {0: ["a"], 1: ["b"]}, "first run"))
    await commit_epoch(options(cluster), await write(cluster, 5, {0: ["c"]}, "second run"))
    await commit_epoch(options(cluster), await write(cluster, 6, {0: ["d"]}, "second run"))
    assert cluster.committed_offsets(name_of(options(cluster), "query", WHOLE)) == {("t", 0): 6}


async def test_groups_of_others_are_none_of_its_business(cluster: EmbeddedCluster) -> None:
    for other in ("query-5", "que"):
        task = Task(other, 9, 1)
        await write_once(options(cluster), {"value": "value"}, task, iter([pa.record_batch({"value": ["x"]})]))
    await commit_epoch(options(cluster), await write(cluster, 5, {0: ["a"]}, "run"))


async def test_a_batch_with_epochs_looks_for_tasks_that_are_left_each_time(cluster: EmbeddedCluster) -> None:
    """It has no run by which it would know that nobody began its epoch before."""
    await commit_epoch(options(cluster), await write(cluster, 4, {0: ["a"]}, run=""))
    await write(cluster, 5, {1: ["b"]}, run="")
    with pytest.raises(MarkerMismatchException, match="partition 1 was committed with 1 rows"):
        await commit_epoch(options(cluster), await write(cluster, 5, {0: ["b"]}, run=""))
