"""DataFrames sent through a producer in the driver, and Spark's jobs driven from an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalArgumentException, RecordTooLargeException

pytest.importorskip("pyspark")

from aioproducer.spark import Progress, produce_dataframe, run_job

pytestmark = pytest.mark.conformance

ROWS = 25_000


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("t", 2)
        yield cluster


@pytest.fixture
async def producer(cluster: EmbeddedCluster) -> AsyncIterator[KafkaProducer]:
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        yield producer


def numbers(spark: Any, count: int, partitions: int) -> Any:
    return spark.range(0, count, 1, partitions).selectExpr("CAST(id AS STRING) AS value")


def written(cluster: EmbeddedCluster, topic: str = "t") -> list[int]:
    partitions = cluster.topic(topic).partitions
    return sorted(int(record.value or b"-1") for each in partitions for record in each.log.records())


def slowly(batches: Any) -> Any:
    """A minute for each task, in a worker."""
    for batch in batches:
        time.sleep(60)
        yield batch


async def running(spark: Any) -> list[int]:
    """The stages that Spark works at."""
    return await asyncio.to_thread(lambda: list(spark.sparkContext.statusTracker().getActiveStageIds()))


async def until_running(spark: Any) -> None:
    async with asyncio.timeout(60):
        while not await running(spark):  # noqa: ASYNC110 - Spark has no event for it
            await asyncio.sleep(0.02)


async def test_every_row_is_sent_once_with_progress_while_others_send(
    spark: Any, cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    cluster.create_topic("others")
    seen: list[Progress] = []
    sending = asyncio.ensure_future(
        produce_dataframe(producer, numbers(spark, ROWS, 3), topic="t", on_progress=seen.append)
    )
    others = 0
    while not sending.done():
        await producer.send("others", b"%d" % others)
        others += 1
        await asyncio.sleep(0.01)
    result = await sending
    result.raise_if_failed()
    assert (result.count, result.delivered) == (ROWS, ROWS)
    assert written(cluster) == list(range(ROWS))
    assert others > 5
    assert [progress.rows for progress in seen] == sorted(progress.rows for progress in seen)
    assert seen[-1].rows == ROWS
    assert seen[-1].size_in_bytes > ROWS


async def test_all_columns_of_the_sink(spark: Any, cluster: EmbeddedCluster, producer: KafkaProducer) -> None:
    frame = spark.sql(
        "SELECT 'k' AS key, X'76' AS value, array(struct('h' AS key, X'31' AS value)) AS headers, 1 AS partition, "
        "timestamp_millis(17) AS timestamp"
    )
    result = await produce_dataframe(producer, frame, topic="t")
    assert result.offsets["t", 1].records == 1
    (record,) = cluster.log("t", 1).records()
    assert record[1:] == (17, b"k", b"v", (("h", b"1"),))


async def test_several_at_once_and_an_action_beside_them(
    spark: Any, cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    topics = ["a", "b"]
    for name in topics:
        cluster.create_topic(name)
    *results, count = await asyncio.gather(
        *(produce_dataframe(producer, numbers(spark, 100, 2), topic=name) for name in topics),
        run_job(spark, numbers(spark, 70, 2).count),
    )
    assert [result.delivered for result in results] == [100, 100]
    assert count == 70
    assert [written(cluster, name) for name in topics] == [list(range(100))] * 2


async def test_cancelled_it_cancels_its_jobs_and_no_others(
    spark: Any, cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    slow = numbers(spark, 10, 1).mapInArrow(slowly, "value string")
    for doomed in (produce_dataframe(producer, slow, topic="t"), run_job(spark, slow.count)):
        task = asyncio.ensure_future(doomed)
        await until_running(spark)
        other = asyncio.ensure_future(run_job(spark, numbers(spark, 5, 1).count))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await other == 5
        assert await running(spark) == []
    assert written(cluster) == []


async def test_an_error_of_spark_or_of_on_progress_ends_the_jobs(
    spark: Any, cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    frame = numbers(spark, 2, 2).selectExpr("IF(value = '1', raise_error('broken'), value) AS value")
    with pytest.raises(Exception, match="broken"):
        await produce_dataframe(producer, frame, topic="t")

    def fail(progress: Progress) -> None:
        raise LookupError(f"after {progress.rows} rows")

    with pytest.raises(LookupError, match="after 10000 rows"):
        await produce_dataframe(producer, numbers(spark, ROWS, 1), topic="t", on_progress=fail)
    assert await running(spark) == []


async def test_a_row_that_fails_harms_no_other(spark: Any, cluster: EmbeddedCluster, producer: KafkaProducer) -> None:
    frame = spark.range(0, 5, 1, 1).selectExpr("IF(id = 3, repeat('x', 2000000), CAST(id AS STRING)) AS value")
    result = await produce_dataframe(producer, frame, topic="t")
    ((row, error),) = result.errors
    assert row == 3
    assert isinstance(error, RecordTooLargeException)
    assert written(cluster) == [0, 1, 2, 4]


async def test_in_a_transaction(spark: Any, cluster: EmbeddedCluster) -> None:
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await produce_dataframe(producer, numbers(spark, 10, 1), topic="t")
            await producer.send("t", b"10")
    assert sum(log.last_stable_offset for log in (cluster.log("t", 0), cluster.log("t", 1))) >= 12


async def test_misuse_is_refused_before_any_job(spark: Any, producer: KafkaProducer) -> None:
    with pytest.raises(IllegalArgumentException, match='there is no column "value"'):
        await produce_dataframe(producer, spark.range(5), topic="t")
