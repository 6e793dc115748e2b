"""Attempts of one task, one after the other and side by side, with the embedded broker and without Spark."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.error_code import ErrorCode
from aioproducer.errors import KafkaError, ProducerFencedException, TimeoutException, UnknownTopicOrPartitionException
from aioproducer.protocol.api_key import ApiKey
from aioproducer.spark.exactly_once import TransactionTooLongException, name_of, too_long, write_once
from aioproducer.spark.marker import Marker, MarkerMismatchException
from aioproducer.spark.sink_options import SinkOptions
from aioproducer.spark.task import Task
from aioproducer.testing.fault_script import FaultScript

from .foreign import values

pa = pytest.importorskip("pyarrow")

COLUMNS = {"value": "value"}
TASK = Task("query", 3, 0)
ROWS = [f"row {number}" for number in range(40)]


@pytest.fixture
def faults() -> Iterator[FaultScript]:
    script = FaultScript(nodes=2)
    yield script
    script.verify()


@pytest.fixture
async def cluster(faults: FaultScript) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(2, faults=faults) as cluster:
        cluster.create_topic("t", 1)
        yield cluster


def options(cluster: EmbeddedCluster, **more: str) -> SinkOptions:
    """All rows go to topic t, unless ``markerTopic`` is given: then each names its topic."""
    given = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "kafka.retry.backoff.ms": "5",
        "kafka.linger.ms": "0",
        "deliveryGuarantee": "exactly-once",
        "allowMissingMarker": "true",  # tests begin with any epoch
    }
    topic = {} if "markerTopic" in more else {"topic": "t"}
    return SinkOptions.of({**given, **topic, **more}, streaming=True)


def batches(rows: list[str], size: int = 8) -> Iterator[Any]:
    for begin in range(0, len(rows), size):
        yield pa.record_batch({"value": rows[begin : begin + size]})


def broken_after(rows: list[str]) -> Iterator[Any]:
    yield from batches(rows)
    raise LookupError("the task fails")


async def write(cluster: EmbeddedCluster, rows: Iterator[Any], task: Task = TASK) -> Marker:
    return await write_once(options(cluster), COLUMNS, task, rows)


async def read(cluster: EmbeddedCluster) -> list[str]:
    return await asyncio.to_thread(values, cluster.bootstrap_servers, "t")


async def test_run_again_after_its_commit_a_task_writes_nothing(cluster: EmbeddedCluster) -> None:
    """Lost executors, commits that Spark denied, drivers killed before they heard of it: all look like this."""
    first = await write(cluster, batches(ROWS))
    end = cluster.log("t").log_end_offset
    assert await write(cluster, batches(ROWS)) == first == Marker(3, 40, first.digest)
    assert cluster.log("t").log_end_offset == end, "not even an aborted record"
    assert await read(cluster) == ROWS
    assert cluster.committed_offsets(name_of(options(cluster), TASK.write, TASK.partition)) == {("t", 0): 3}


async def test_rows_in_another_order_and_other_batches_are_the_same(cluster: EmbeddedCluster) -> None:
    await write(cluster, batches(ROWS))
    await write(cluster, batches(ROWS[::-1], size=13))
    assert await read(cluster) == ROWS


@pytest.mark.parametrize("before", [0, 8, 40])
async def test_what_a_failed_attempt_wrote_is_not_read(cluster: EmbeddedCluster, before: int) -> None:
    with pytest.raises(LookupError, match="the task fails"):
        await write(cluster, broken_after(ROWS[:before]))
    await write(cluster, batches(ROWS))
    assert await read(cluster) == ROWS


async def test_each_epoch_and_each_partition_is_written(cluster: EmbeddedCluster) -> None:
    tasks = [Task("query", 3, 0), Task("query", 3, 1), Task("query", 4, 0), Task("other", 3, 0)]
    for task in tasks:
        await write(cluster, batches([str(task)]), task)
    assert await read(cluster) == [str(task) for task in tasks]


@pytest.mark.parametrize("again", [[*ROWS, "one more"], ROWS[1:], ["another", *ROWS[1:]], []])
async def test_other_rows_fail_the_task_and_nothing_is_written(cluster: EmbeddedCluster, again: list[str]) -> None:
    await write(cluster, batches(ROWS))
    with pytest.raises(MarkerMismatchException, match=r"epoch 3 of query, partition 0, attempt 0: .* with 40 rows"):
        await write(cluster, batches(again))
    assert await read(cluster) == ROWS


async def test_that_there_were_no_rows_is_remembered_too(cluster: EmbeddedCluster) -> None:
    await write(cluster, batches([]))
    await write(cluster, batches([]))
    with pytest.raises(MarkerMismatchException, match="with 0 rows"):
        await write(cluster, batches(ROWS))
    assert await read(cluster) == []


async def test_an_epoch_after_which_others_were_written_is_refused(cluster: EmbeddedCluster) -> None:
    await write(cluster, batches(ROWS))
    with pytest.raises(MarkerMismatchException, match="epoch 3 was written already"):
        await write(cluster, batches(["older"]), Task("query", 2, 0))
    assert await read(cluster) == ROWS


async def test_of_two_attempts_at_once_the_later_one_writes(cluster: EmbeddedCluster) -> None:
    """A speculative copy, or a task of a driver that was lost and lives on: it is fenced before anything is read."""
    half, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Any]:
        yield from batches(ROWS[:20])
        half.set()
        assert go_on.wait(20)
        yield from batches(ROWS[20:])

    first = asyncio.ensure_future(write(cluster, slow()))
    assert await asyncio.to_thread(half.wait, 20)
    await write(cluster, batches(ROWS))
    go_on.set()
    with pytest.raises(KafkaError, match=r"(?i)fenced|newer producer"):
        await first
    assert await read(cluster) == ROWS


@pytest.mark.parametrize("sent_then", [0, 20], ids=["before the marker", "between rows"])
async def test_a_task_that_outlasts_its_transaction_is_told_the_config(
    cluster: EmbeddedCluster, sent_then: int
) -> None:
    brief = options(cluster, **{"kafka.transaction.timeout.ms": "100"})

    def slow() -> Iterator[Any]:
        yield from batches(ROWS[:20])
        deadline = time.monotonic() + 30
        while cluster.log("t").log_end_offset <= 20:  # until the broker has aborted the transaction
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield from batches(ROWS[20 : 20 + sent_then])

    with pytest.raises(
        TransactionTooLongException,
        match=r"epoch 3 of query, partition 0, attempt 0: .* after transaction\.timeout\.ms = 100, so this attempt",
    ):
        await write_once(brief, COLUMNS, TASK, slow())
    await write(cluster, batches(ROWS))
    assert await read(cluster) == ROWS


def test_what_fails_in_time_or_of_something_else_is_no_time_out() -> None:
    chosen = SinkOptions.of(
        {
            "kafka.bootstrap.servers": "localhost:9092",
            "topic": "t",
            "deliveryGuarantee": "exactly-once",
            "kafka.transaction.timeout.ms": "2000",
        },
        streaming=True,
    )
    fenced = KafkaError("a row failed")
    fenced.__cause__ = ProducerFencedException("a newer producer")
    assert too_long(fenced, chosen, 1.9, "here") is None
    assert too_long(KafkaError("a row failed"), chosen, 2.1, "here") is None
    assert "under way for 2.1 s" in str(too_long(fenced, chosen, 2.1, "here"))


async def test_a_commit_whose_end_was_not_heard_of_counts(cluster: EmbeddedCluster, faults: FaultScript) -> None:
    faults.on(ApiKey.END_TXN).never_answer()
    impatient = options(cluster, **{"kafka.max.block.ms": "300"})
    with pytest.raises(TimeoutException, match="commit_transaction has not ended"):
        await write_once(impatient, COLUMNS, TASK, batches(ROWS))
    await write(cluster, batches(ROWS))
    assert await read(cluster) == ROWS


async def test_a_marker_that_is_not_stable_yet_is_waited_for(cluster: EmbeddedCluster, faults: FaultScript) -> None:
    await write(cluster, batches(ROWS))
    faults.on(ApiKey.OFFSET_FETCH).answer(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    await write(cluster, batches(ROWS))
    assert await read(cluster) == ROWS


async def test_who_else_uses_the_name_is_told(cluster: EmbeddedCluster) -> None:
    name = name_of(options(cluster), TASK.write, TASK.partition)
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=name) as other:
        await other.init_transactions()
        async with other.transaction():
            await other.send_offsets_to_transaction({("t", 0): 5}, name)  # type: ignore[dict-item]
    with pytest.raises(MarkerMismatchException, match="no marker of this sink"):
        await write(cluster, batches(ROWS))


async def test_a_row_that_cannot_be_sent_leaves_nothing_behind(cluster: EmbeddedCluster) -> None:
    with pytest.raises(KafkaError, match="row 39, to topic 't': RecordTooLargeException"):
        await write(cluster, batches([*ROWS[:39], "x" * 2_000_000]))
    assert await read(cluster) == []


async def write_routed(cluster: EmbeddedCluster, *topics: str, marker_topic: str = "markers") -> Marker:
    """A row for each topic, which it names."""
    rows = pa.record_batch({"value": ROWS[: len(topics)], "topic": topics})
    columns = {"value": "value", "topic": "topic"}
    return await write_once(options(cluster, markerTopic=marker_topic), columns, TASK, iter([rows]))


async def test_rows_that_name_their_topics_are_written_once(cluster: EmbeddedCluster) -> None:
    for name in ("u", "markers"):
        cluster.create_topic(name, 1)
    first = await write_routed(cluster, "t", "u", "t")
    assert await write_routed(cluster, "t", "u", "t") == first
    assert await read(cluster) == [ROWS[0], ROWS[2]]
    assert await asyncio.to_thread(values, cluster.bootstrap_servers, "u") == [ROWS[1]]
    assert cluster.committed_offsets(name_of(options(cluster), TASK.write, TASK.partition)) == {("markers", 0): 3}
    with pytest.raises(MarkerMismatchException, match="with 3 rows"):
        await write_routed(cluster, "t", "t", "u")


async def test_a_marker_topic_that_is_not_there_is_told_before_any_row_is_sent(cluster: EmbeddedCluster) -> None:
    with pytest.raises(
        UnknownTopicOrPartitionException, match=r"partition 0, attempt 0: .* 'no', and there is no such topic"
    ):
        await write_routed(cluster, "t", marker_topic="no")
    assert cluster.log("t").log_end_offset == 0
