"""The map of the fleet's cluster: that it says what Metadata means, and moves leaders as it is told."""

from __future__ import annotations

import pytest

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.codec import decode
from aioproducer.protocol.messages.metadata import MetadataResponse
from benchmarks.fleet.cluster_map import METADATA_VERSION, PORT, ClusterMap


def answer(cluster: ClusterMap, *topics: str) -> MetadataResponse:
    return decode(MetadataResponse, METADATA_VERSION, cluster.metadata(topics))


def leaders(cluster: ClusterMap, topic: str) -> list[int]:
    (told,) = answer(cluster, topic).topics
    return [partition.leader_id for partition in told.partitions]


def test_metadata_tells_brokers_topics_and_partitions() -> None:
    cluster = ClusterMap(4, ["a", "b"], 6)
    told = answer(cluster, "b", "none")
    assert [(broker.node_id, broker.host, broker.port, broker.rack) for broker in told.brokers] == [
        (number, f"10.1.0.{number}", PORT, f"rack-{number % 3}") for number in range(4)
    ]
    found, missing = told.topics
    assert (found.error_code, found.name, found.topic_id) == (0, "b", cluster.topics["b"].topic_id)
    assert [one.partition_index for one in found.partitions] == list(range(6))
    first = found.partitions[0]  # the seventh of the cluster
    assert (first.leader_id, first.leader_epoch, first.replica_nodes, first.isr_nodes) == (2, 0, [2, 3, 0], [2, 3, 0])
    assert (missing.error_code, missing.name, missing.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "none", [])


def test_leaders_move_away_and_back() -> None:
    cluster = ClusterMap(4, ["a"], 8)
    assert leaders(cluster, "a") == [0, 1, 2, 3, 0, 1, 2, 3]
    cluster.stop([1])
    assert [broker.node_id for broker in answer(cluster, "a").brokers] == [0, 2, 3]
    assert leaders(cluster, "a") == [0, 2, 2, 3, 0, 2, 2, 3]
    assert cluster.leader(cluster.topics["a"], 1) == (2, 1)
    cluster.start([1])
    assert leaders(cluster, "a") == [0, 2, 2, 3, 0, 2, 2, 3]
    cluster.prefer()
    assert leaders(cluster, "a") == [0, 1, 2, 3, 0, 1, 2, 3]
    assert cluster.leader(cluster.topics["a"], 1) == (1, 2)
    cluster.give_away([1, 3])
    assert leaders(cluster, "a") == [0, 2, 2, 0, 0, 2, 2, 0]
    assert len(answer(cluster).brokers) == 4


def test_a_partition_whose_replicas_are_all_gone_has_no_leader_until_one_is_back() -> None:
    cluster = ClusterMap(5, ["a"], 5)
    cluster.stop([1, 2, 3])
    (told,) = answer(cluster, "a").topics
    assert [(one.leader_id, one.error_code) for one in told.partitions] == [
        (0, 0), (-1, ErrorCode.LEADER_NOT_AVAILABLE), (4, 0), (4, 0), (4, 0)
    ]  # fmt: skip
    cluster.start([3])
    assert leaders(cluster, "a") == [0, 3, 4, 4, 4]


def test_topics_come_and_go() -> None:
    cluster = ClusterMap(3, ["a"], 2)
    created = cluster.create("b")
    assert cluster.by_id[created.topic_id] is created
    assert leaders(cluster, "b") == [2, 0]
    cluster.delete("a")
    assert answer(cluster, "a").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert leaders(cluster, "b") == [2, 0]


def test_too_few_brokers_are_refused() -> None:
    with pytest.raises(ValueError, match="3 replicas"):
        ClusterMap(2, ["a"], 1)
