"""DescribeCluster, CreatePartitions, DeleteRecords."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aioproducer.protocol.messages.describe_cluster import DescribeClusterRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from . import Connect, RawClient, make_batch

TWO_NODES = pytest.mark.parametrize("cluster", [{"nodes": 2, "racks": ["a", None]}], indirect=True)


@pytest.mark.parametrize("version", range(3))
@TWO_NODES
async def test_describe_cluster(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    answer = await client.request(DescribeClusterRequest(), version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (ErrorCode.NONE, cluster.cluster_id, 0)
    brokers = [f"{broker.host}:{broker.port}" for broker in answer.brokers]
    assert ",".join(brokers) == cluster.bootstrap_servers
    assert [(broker.broker_id, broker.rack, broker.is_fenced) for broker in answer.brokers] == [
        (0, "a", False),
        (1, None, False),
    ]


@pytest.mark.parametrize(
    ("kind", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
async def test_a_broker_is_no_controller(client: RawClient, kind: int, code: ErrorCode) -> None:
    answer = await client.request(DescribeClusterRequest(endpoint_type=kind), 2)
    assert (answer.error_code, answer.brokers) == (code, [])


async def add_partitions(client: RawClient, *topics: CreatePartitionsTopic, version: int = 3, **more: Any) -> Any:
    response = await client.request(CreatePartitionsRequest(list(topics), **more), version)
    return [(result.name, ErrorCode(result.error_code).name) for result in response.results]


@pytest.mark.parametrize("version", range(4))
@TWO_NODES
async def test_more_partitions(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    cluster.create_topic("t", 2, 2)
    wanted = CreatePartitionsTopic("t", 4, None)
    assert await add_partitions(client, wanted, version=version, validate_only=True) == [("t", "NONE")]
    assert len(cluster.topic("t").partitions) == 2
    assert await add_partitions(client, wanted, version=version) == [("t", "NONE")]
    assert len(cluster.topic("t").partitions) == 4
    assert all(len(partition.replicas) == 2 for partition in cluster.topic("t").partitions)
    assert cluster.leader("t", 3) in (0, 1)
    assigned = CreatePartitionsTopic("t", 5, [CreatePartitionsAssignment([1, 0])])
    assert await add_partitions(client, assigned, version=version) == [("t", "NONE")]
    assert cluster.leader("t", 4) == 1


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize("counts", [(2**31 - 1,), (10_002,), (5001, 5002)])
async def test_no_more_than_10_000_new_partitions_in_one_request(
    cluster: EmbeddedCluster, client: RawClient, counts: tuple[int, ...], validate_only: bool
) -> None:
    wanted = []
    for number, count in enumerate(counts):
        cluster.create_topic(f"t{number}", 1)
        wanted.append(CreatePartitionsTopic(f"t{number}", count, None))
    answers = await add_partitions(client, *wanted, validate_only=validate_only)
    assert [code for _, code in answers] == ["POLICY_VIOLATION"] * len(counts)
    assert [len(topic.partitions) for topic in cluster.topics] == [1] * len(counts)


@TWO_NODES
@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (CreatePartitionsTopic("u", 4, None), "UNKNOWN_TOPIC_OR_PARTITION"),
        (CreatePartitionsTopic("t", 2, None), "INVALID_PARTITIONS"),
        (CreatePartitionsTopic("t", 1, None), "INVALID_PARTITIONS"),
        (CreatePartitionsTopic("t", 4, [CreatePartitionsAssignment([0])]), "INVALID_REPLICA_ASSIGNMENT"),
        (CreatePartitionsTopic("t", 3, [CreatePartitionsAssignment([0, 1])]), "INVALID_REPLICA_ASSIGNMENT"),
        (CreatePartitionsTopic("t", 3, [CreatePartitionsAssignment([7])]), "INVALID_REPLICA_ASSIGNMENT"),
    ],
    ids=str,
)
async def test_partitions_that_cannot_be(
    cluster: EmbeddedCluster, client: RawClient, wanted: CreatePartitionsTopic, code: str
) -> None:
    cluster.create_topic("t", 2, 1)
    assert await add_partitions(client, wanted) == [(wanted.name, code)]
    assert await add_partitions(client, wanted, wanted) == [(wanted.name, "INVALID_REQUEST")]
    assert len(cluster.topic("t").partitions) == 2


async def delete_records(client: RawClient, offset: int, topic: str = "t", index: int = 0, version: int = 2) -> Any:
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(index, offset)])])
    (found,) = (await client.request(request, version)).topics
    (answer,) = found.partitions
    return answer.low_watermark, ErrorCode(answer.error_code).name


@pytest.mark.parametrize("version", range(3))
async def test_delete_records(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    cluster.create_topic("t")
    batches = TopicProduceData("t", partition_data=[PartitionProduceData(0, make_batch(b"a", b"b", b"c"))])
    await client.request(ProduceRequest(acks=-1, topic_data=[batches]), 12)
    assert await delete_records(client, 2, version=version) == (2, "NONE")
    assert await delete_records(client, 4, version=version) == (-1, "OFFSET_OUT_OF_RANGE")
    assert await delete_records(client, -1, version=version) == (3, "NONE")
    assert cluster.log("t").log_start_offset == 3


@TWO_NODES
async def test_only_the_leader_deletes_records(cluster: EmbeddedCluster, connect: Connect) -> None:
    cluster.create_topic("t", assignments=[[0, 1]])
    other = await connect(1)
    assert await delete_records(other, 0) == (-1, "NOT_LEADER_OR_FOLLOWER")
    assert await delete_records(other, 0, "u") == (-1, "UNKNOWN_TOPIC_OR_PARTITION")
    assert await delete_records(other, 0, index=1) == (-1, "UNKNOWN_TOPIC_OR_PARTITION")
