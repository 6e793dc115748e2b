"""Attempts of one task, one after the other and side by side, with the embedded broker and without Spark."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import KafkaError, ProducerFencedException, UnknownTopicOrPartitionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.spark.exactly_once.ledger import open_drivers_ledger
from aioproducer.spark.exactly_once.marker import MarkerMismatchException
from aioproducer.spark.exactly_once.prepared import Outcome, TooManyOpenException
from aioproducer.spark.exactly_once.two_phases import abort_undecided
from aioproducer.spark.exactly_once.write_once import TransactionTooLongException, too_long, write_once
from aioproducer.spark.sink.sink_options import SinkOptions
from aioproducer.spark.sink.task import Task
from aioproducer.testing.faults.fault_script import FaultScript
from tests.spark.foreign import values
from tests.spark.writes.epochs import (
    COLUMNS,
    attempt,
    attempts,
    batches,
    commit,
    open_transactions,
    options,
    read,
    write_epoch,
)
from tests.spark.writes.two_nodes import chosen as chosen
from tests.spark.writes.two_nodes import cluster as cluster
from tests.spark.writes.two_nodes import faults as faults
from tests.support.polling import until

pa = pytest.importorskip("pyarrow")

pytestmark = pytest.mark.once

ROWS = [f"row {number}" for number in range(40)]


def broken_after(rows: list[str]) -> Iterator[Any]:
    yield from batches(rows)
    raise LookupError("the task fails")


async def test_rows_are_read_when_the_driver_has_committed_them(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    outcome = await attempt(chosen, 3, 0, ROWS)
    assert (outcome.partition, outcome.rows) == (0, 40)
    assert await open_transactions(cluster) == ["aioproducer-query-0.0"], "its producer is closed"
    assert await read(cluster) == []
    await commit(chosen, 3, [outcome])
    assert await open_transactions(cluster) == []
    assert await read(cluster) == ROWS
    assert cluster.committed_offsets("aioproducer-query-0") == {("t", 0): 3}


async def test_run_again_after_its_commit_a_task_writes_nothing(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    """Drivers killed before Spark heard of the commit look like this."""
    first = await attempt(chosen, 3, 0, ROWS)
    await commit(chosen, 3, [first])
    end = cluster.log("t").log_end_offset
    assert await attempt(chosen, 3, 0, ROWS) == Outcome(0, 40, first.digest, None)
    assert cluster.log("t").log_end_offset == end, "not even an aborted record"
    assert await read(cluster) == ROWS


async def test_rows_in_another_order_and_other_batches_are_the_same(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    await write_epoch(chosen, 3, ROWS)
    again = await write_once(chosen, COLUMNS, Task("query", 3, 0), batches(ROWS[::-1], size=13))
    await commit(chosen, 3, [again])
    assert await read(cluster) == ROWS


@pytest.mark.parametrize("before", [0, 8, 40])
async def test_records_of_a_failed_attempt_are_not_read(
    cluster: EmbeddedCluster, chosen: SinkOptions, before: int
) -> None:
    with pytest.raises(LookupError, match="the task fails"):
        await attempt(chosen, 3, 0, broken_after(ROWS[:before]))
    assert await open_transactions(cluster) == []
    await commit(chosen, 3, [await attempt(chosen, 3, 0, ROWS, number=1)])
    assert await read(cluster) == ROWS


async def test_an_epoch_after_which_others_were_written_is_refused(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    await write_epoch(chosen, 3, ROWS)
    with pytest.raises(MarkerMismatchException, match=r"epoch 2 of query, partition 0.*: epoch 3 was written already"):
        await attempt(chosen, 2, 0, ["older"])
    assert await read(cluster) == ROWS


@pytest.mark.parametrize("number", [0, 1], ids=["of another stage", "speculative"])
async def test_a_copy_ends_nothing_that_another_attempt_holds(
    cluster: EmbeddedCluster, chosen: SinkOptions, number: int
) -> None:
    """An attempt of a stage that is run again has the number of an earlier one."""
    half, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Any]:
        yield from batches(ROWS[:20])
        half.set()
        assert go_on.wait(20)
        yield from batches(ROWS[20:])

    first = await attempt(chosen, 3, 0, ROWS)
    copy = asyncio.ensure_future(attempt(chosen, 3, 0, slow(), number=number))
    assert await asyncio.to_thread(half.wait, 20)
    go_on.set()
    assert (await copy).rows == 40
    assert await open_transactions(cluster) == ["aioproducer-query-0.0", "aioproducer-query-0.1"]
    await commit(chosen, 3, [first])
    assert await open_transactions(cluster) == [], "the driver aborts the other one"
    assert await read(cluster) == ROWS


async def test_a_copy_that_ends_after_the_driver_has_decided_leaves_nothing_open(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    ready, go_on = threading.Event(), threading.Event()

    def late() -> Iterator[Any]:
        ready.set()
        assert go_on.wait(20)
        yield from batches(ROWS)

    copy = asyncio.ensure_future(attempt(chosen, 3, 0, late(), number=1))
    assert await asyncio.to_thread(ready.wait, 20)
    await write_epoch(chosen, 3, ROWS)
    go_on.set()
    assert (await copy).prepared is None
    assert await open_transactions(cluster) == []
    assert await read(cluster) == ROWS


async def test_attempts_that_begin_at_the_same_time_have_different_ids(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    both = await asyncio.gather(*(attempt(chosen, 3, 0, ROWS, number=number) for number in range(2)))
    await commit(chosen, 3, both[1:])
    assert await read(cluster) == ROWS


async def test_attempts_that_leave_too_many_transactions_open_are_refused(
    cluster: EmbeddedCluster, chosen: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioproducer.spark.exactly_once.write_once._SLOTS", 2)
    for _ in range(2):
        await attempt(chosen, 3, 0, ROWS)
    with pytest.raises(
        TooManyOpenException,
        match=r"epoch 3 of query, partition 0, attempt 0: 2 transactions .* aioproducer spark show query --topic t ",
    ):
        await attempt(chosen, 3, 0, ROWS)
    assert (await attempt(chosen, 3, 1, ROWS)).prepared is not None, "other partitions have their own"
    async with open_drivers_ledger(chosen, "query", "here") as ledger:
        await abort_undecided(ledger)
    await write_epoch(chosen, 3, ROWS)
    assert await read(cluster) == ROWS


@pytest.mark.parametrize("sent_then", [0, 20], ids=["before the marker", "between rows"])
async def test_a_task_that_outlasts_its_transaction_fails_with_the_name_of_the_config(
    cluster: EmbeddedCluster, chosen: SinkOptions, sent_then: int
) -> None:
    brief = options(cluster, **{"kafka.transaction.timeout.ms": "100"})

    def slow() -> Iterator[Any]:
        yield from batches(ROWS[:20])
        until(lambda: cluster.log("t").log_end_offset > 20, "the broker has not aborted the transaction")
        yield from batches(ROWS[20 : 20 + sent_then])

    with pytest.raises(
        TransactionTooLongException,
        match=r"epoch 3 of query, partition 0, attempt 0: .* after transaction\.timeout\.ms = 100, so this attempt",
    ):
        await attempt(brief, 3, 0, slow())
    await write_epoch(chosen, 3, ROWS)
    assert await read(cluster) == ROWS


def test_a_failure_in_time_or_of_another_cause_is_no_time_out() -> None:
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


async def test_a_decision_that_is_not_stable_yet_is_waited_for(
    cluster: EmbeddedCluster, chosen: SinkOptions, faults: FaultScript
) -> None:
    await write_epoch(chosen, 3, ROWS)
    faults.on(ApiKey.OFFSET_FETCH).answer(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    await write_epoch(chosen, 3, ROWS)
    assert await read(cluster) == ROWS


async def test_the_error_names_the_other_user_of_the_name(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    name = "aioproducer-query-all"
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=name) as other:
        await other.init_transactions()
        async with other.transaction():
            await other.send_offsets_to_transaction({("t", 0): 5}, name)  # type: ignore[dict-item]
    with pytest.raises(MarkerMismatchException, match="not a marker of this sink"):
        await attempt(chosen, 3, 0, ROWS)


async def test_a_row_that_cannot_be_sent_leaves_nothing_behind(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    with pytest.raises(KafkaError, match="row 39, to topic 't': RecordTooLargeException"):
        await attempt(chosen, 3, 0, [*ROWS[:39], "x" * 2_000_000])
    assert await open_transactions(cluster) == []
    assert await read(cluster) == []


async def test_a_task_without_rows_makes_the_topic(cluster: EmbeddedCluster) -> None:
    chosen = options(cluster, topic="made-by-it")
    await commit(chosen, 5, await attempts(chosen, 5, {0: []}))
    assert await read(cluster, "made-by-it") == []
    assert cluster.committed_offsets("aioproducer-query-0") == {("made-by-it", 0): 5}


async def write_routed(cluster: EmbeddedCluster, *topics: str, marker_topic: str = "markers") -> None:
    """A row for each topic, which it names."""
    rows = pa.record_batch({"value": ROWS[: len(topics)], "topic": topics})
    columns = {"value": "value", "topic": "topic"}
    routed = options(cluster, markerTopic=marker_topic)
    await commit(routed, 3, [await write_once(routed, columns, Task("query", 3, 0), iter([rows]))])


async def test_rows_that_name_their_topics_are_written_once(cluster: EmbeddedCluster) -> None:
    for name in ("u", "markers"):
        cluster.create_topic(name, 1)
    await write_routed(cluster, "t", "u", "t")
    await write_routed(cluster, "t", "u", "t")
    assert await read(cluster) == [ROWS[0], ROWS[2]]
    assert await asyncio.to_thread(values, cluster.bootstrap_servers, "u") == [ROWS[1]]
    assert cluster.committed_offsets("aioproducer-query-0") == {("markers", 0): 3}
    with pytest.raises(MarkerMismatchException, match="with 3 rows"):
        await write_routed(cluster, "t", "t", "u")


async def test_a_marker_topic_that_is_not_there_is_an_error_before_any_row_is_sent(cluster: EmbeddedCluster) -> None:
    with pytest.raises(
        UnknownTopicOrPartitionException, match=r"partition 0, attempt 0: .* 'no', and this topic does not exist"
    ):
        await write_routed(cluster, "t", marker_topic="no")
    assert cluster.log("t").log_end_offset == 0


async def test_each_epoch_is_written_whatever_partitions_it_has(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    for epoch, parts in enumerate([["a"], ["b", "c", ""], ["d"], ["e", "f"]]):
        await commit(chosen, epoch, await attempts(chosen, epoch, {n: [row] for n, row in enumerate(parts)}))
    assert await read(cluster) == ["a", "b", "c", "", "d", "e", "f"]
