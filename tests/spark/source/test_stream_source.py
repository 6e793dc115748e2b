"""The planning of a stream, without a query."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from aioproducer.errors import IllegalArgumentException, OffsetOutOfRangeException
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.spark.topics import fill

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from aioproducer.spark.source.offset_plan import OffsetRange
from aioproducer.spark.source.stream_source import StreamReader

pytestmark = pytest.mark.conformance


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(topics=["gone", "stays"], configs={"auto.create.topics.enable": "false"}) as cluster:
        fill(cluster, "stays", 4)
        yield cluster


@contextmanager
def planner(cluster: ThreadedCluster, **more: str) -> Iterator[StreamReader]:
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "gone,stays", **more}
    reader = StreamReader(options, StructType([StructField("offset", LongType())]))
    try:
        yield reader
    finally:
        reader.stop()


@pytest.mark.parametrize(
    "plan", ["getDefaultReadLimit", "initialOffset", "latestOffset", "prepareForTriggerAvailableNow"]
)
def test_wrong_options_are_an_error_of_the_first_call_that_plans(cluster: ThreadedCluster, plan: str) -> None:
    """Not of the constructor, whose errors PySpark replaces by one of its own."""
    pytest.importorskip("pyspark.sql.streaming.datasource")
    message = 'did you mean "startingOffsets"'
    with planner(cluster, startingOffset="earliest") as reader, pytest.raises(IllegalArgumentException, match=message):
        getattr(reader, plan)()


def test_a_deleted_topic_is_an_error_before_the_checkpoint_has_it(cluster: ThreadedCluster) -> None:
    cluster.delete_topic("gone")
    start = {"gone": {"0": 5}, "stays": {"0": 1}}
    with planner(cluster) as reader:
        with pytest.raises(OffsetOutOfRangeException, match="gone-0 is gone: it was read up to offset 5"):
            reader.latestOffset(start)
        assert reader.latestOffset() == {"stays": {"0": 4}}, "as Spark 4.1 calls it"
    with planner(cluster, failOnDataLoss="false") as reader:
        assert reader.latestOffset(start) == {"stays": {"0": 4}}


def test_a_topic_is_gone_when_its_batch_is_planned_again(cluster: ThreadedCluster, caplog: Any) -> None:
    """As at the start of a query that was stopped before the batch was committed."""
    cluster.delete_topic("gone")
    batch = ({"gone": {"0": 5}, "stays": {"0": 1}}, {"gone": {"0": 9}, "stays": {"0": 4}})
    message = "gone-0 is gone: it was to be read from offset 5 to 9"
    with planner(cluster) as reader, pytest.raises(OffsetOutOfRangeException, match=message):
        reader.partitions(*batch)
    with planner(cluster, failOnDataLoss="false") as reader:
        (left,) = reader.partitions(*batch)
    assert left.value == OffsetRange("stays", 0, 1, 4)
    assert message in caplog.text


def test_a_batch_waits_for_enough_offsets_but_not_for_ever(cluster: ThreadedCluster, monkeypatch: Any) -> None:
    limits = pytest.importorskip("pyspark.sql.streaming.datasource")
    now = 1000.0
    monkeypatch.setattr("aioproducer.spark.source.stream_source.monotonic", lambda: now)
    more = {"startingOffsets": "earliest", "minOffsetsPerTrigger": "3", "maxTriggerDelay": "60s"}
    with planner(cluster, **more) as reader:
        limit = reader.getDefaultReadLimit()
        assert limit == limits.ReadMinRows(3)
        first = reader.latestOffset(reader.initialOffset(), limit)
        assert first == {"gone": {"0": 0}, "stays": {"0": 4}}
        fill(cluster, "stays", 2, first=4)
        assert reader.latestOffset(first, limit) == first
        assert reader.reportLatestOffset() == {"gone": {"0": 0}, "stays": {"0": 6}}, "what is there is reported"
        assert reader.latestOffset(first, limits.ReadAllAvailable())["stays"] == {"0": 6}, (
            "as a trigger calls it that ends"
        )
        fill(cluster, "gone", 1)
        second = reader.latestOffset(first, limit)
        assert second == {"gone": {"0": 1}, "stays": {"0": 6}}
        fill(cluster, "gone", 1, first=1)
        now += 59.9
        assert reader.latestOffset(second, limit) == second
        now += 0.2
        assert reader.latestOffset(second, limit)["gone"] == {"0": 2}
    with planner(cluster, **more, maxOffsetsPerTrigger="3") as reader:
        limit = reader.getDefaultReadLimit()
        assert limit == limits.ReadMaxRows(3)
        reader.latestOffset(reader.initialOffset(), limit)
        third = reader.latestOffset(second, limit)
        assert third == second, "one offset is waiting, and three are wanted"
        reader.prepareForTriggerAvailableNow()
        assert reader.latestOffset(second, limit)["gone"] == {"0": 2}, "a query that ends waits for nothing"


def test_tasks_are_sent_nothing_of_the_plan(cluster: ThreadedCluster) -> None:
    with planner(cluster, startingOffsets="earliest") as reader:
        before = len(pickle.dumps(reader))
        reader.latestOffset(reader.initialOffset())
        assert len(pickle.dumps(reader)) == before
        (task,) = reader.partitions({"gone": {"0": 0}, "stays": {"0": 1}}, {"gone": {"0": 0}, "stays": {"0": 4}})
        batches = list(pickle.loads(pickle.dumps(reader)).read(task))
    assert [offset for batch in batches for offset in batch.column("offset").to_pylist()] == [1, 2, 3]
