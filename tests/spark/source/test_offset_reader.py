"""The cluster data that a plan looks up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from aioproducer.admin import KafkaAdmin
from aioproducer.errors import IllegalArgumentException, TimeoutException, UnknownTopicOrPartitionException
from aioproducer.spark.source.offset_reader import OffsetReader
from aioproducer.spark.source.source_options import EARLIEST, LATEST, Position, SourceOptions
from aioproducer.testing.threaded_cluster import ThreadedCluster
from aioproducer.types import TopicPartition
from tests.spark.topics import fill, open_transaction, transactions
from tests.threads import assert_no_thread_is_left

A, B, C = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(2, topics={"t": 2, "u": 1}) as cluster:
        yield cluster


@contextmanager
def reader(cluster: ThreadedCluster, **given: str) -> Iterator[OffsetReader]:
    servers = cluster.bootstrap_servers
    options = {"kafka.bootstrap.servers": servers, "kafka.retry.backoff.ms": "1", **(given or {"subscribe": "t"})}
    with closing(OffsetReader(SourceOptions.of(options, streaming=False))) as offsets:
        yield offsets


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"subscribe": "u,t"}, {A, B, C}),
        ({"subscribePattern": "t|nosuch"}, {A, B}),
        ({"subscribePattern": "[tu]"}, {A, B, C}),
        ({"subscribePattern": "nosuch"}, set()),
        ({"assign": '{"t": [1], "u": [0]}'}, {B, C}),
    ],
)
def test_the_subscribed_partitions_are_found(
    cluster: ThreadedCluster, given: dict[str, str], expected: set[TopicPartition]
) -> None:
    with reader(cluster, **given) as offsets:
        assert set(offsets.partitions()) == set(offsets.partitions(gone=True)) == expected


@pytest.mark.parametrize(
    ("given", "left", "message"),
    [
        ({"subscribe": "t,nosuch"}, {A, B}, "nosuch"),
        ({"assign": '{"t": [0, 2]}'}, {A}, "names t-2, which does not exist"),
        ({"assign": '{"nosuch": [0]}'}, set(), "nosuch"),
    ],
)
def test_a_missing_partition_is_an_error_unless_it_may_be_gone(
    cluster: ThreadedCluster, given: dict[str, str], left: set[TopicPartition], message: str
) -> None:
    with reader(cluster, **given) as offsets:
        with pytest.raises(UnknownTopicOrPartitionException, match=message):
            offsets.partitions()
        assert set(offsets.partitions(gone=True)) == left


def test_positions_become_offsets(cluster: ThreadedCluster) -> None:
    fill(cluster, "t", 5, 3)
    cluster.call(lambda embedded: embedded.log("t").delete_records(2))
    with reader(cluster) as offsets:
        assert offsets.offsets([A, B, C], EARLIEST) == {A: 2, B: 0, C: 0}
        assert offsets.offsets([A, B, C], LATEST) == {A: 5, B: 3, C: 0}
        positions = {A: Position("offset", EARLIEST), B: Position("time", 1001), C: Position("offset", 7)}
        assert offsets.resolve(positions, "o", latest_if_none=False) == {A: 2, B: 1, C: 7}
        late = {A: Position("time", 1004), B: Position("time", 1004)}
        assert offsets.resolve(late, "startingTimestamp", latest_if_none=True) == {A: 4, B: 3}
        with pytest.raises(IllegalArgumentException, match='"startingTimestamp": t-1 has no record from that time on'):
            offsets.resolve(late, "startingTimestamp", latest_if_none=False)


def test_committed_records_end_before_open_transactions(cluster: ThreadedCluster) -> None:
    transactions(cluster, "t", "commit")
    with open_transaction(cluster, "t"):
        for level, end in (("read_uncommitted", 4), ("read_committed", 3)):
            with reader(cluster, **{"subscribe": "t", "kafka.isolation.level": level}) as offsets:
                assert offsets.offsets([A], LATEST) == {A: end}


def test_a_deleted_topic_is_left_out_and_not_waited_for(cluster: ThreadedCluster) -> None:
    fill(cluster, "t", 5, 3)
    fill(cluster, "u", 1)
    with reader(cluster, subscribe="t,u", **{"kafka.default.api.timeout.ms": "3600000"}) as offsets:
        assert offsets.ends() == {A: 5, B: 3, C: 1}
        cluster.delete_topic("u")
        assert offsets.ends() == {A: 5, B: 3}
        assert offsets.beginnings([A, C, TopicPartition("t", 7)]) == {A: 0}
        assert offsets.beginnings([]) == {}


@pytest.mark.parametrize("broken", ["start", "from_config"])
def test_a_client_that_cannot_start_leaves_no_thread(
    cluster: ThreadedCluster, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: Any) -> None:
        raise LookupError("not today")

    monkeypatch.setattr(KafkaAdmin, broken, fail)
    before = threading.enumerate()
    with pytest.raises(LookupError, match="not today"), reader(cluster):
        pass
    assert_no_thread_is_left(before)


def test_no_broker(cluster: ThreadedCluster) -> None:
    quick = {"subscribe": "t", "kafka.default.api.timeout.ms": "50"}
    with reader(cluster, **quick) as offsets:
        cluster.stop_node(0)
        cluster.stop_node(1)
        with pytest.raises(TimeoutException, match=r"default\.api\.timeout\.ms=50"):
            offsets.partitions()
