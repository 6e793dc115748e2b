from __future__ import annotations

from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.primitives import ZERO_UUID

from . import Connect, RawClient

TWO_NODES = pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)


async def create(client: RawClient, *topics: CreatableTopic, version: int = 7, **more: Any) -> list[Any]:
    response = await client.request(CreateTopicsRequest(list(topics), **more), version)
    results: list[Any] = response.topics
    return results


@pytest.mark.parametrize("version", range(2, 8))
@TWO_NODES
async def test_a_topic_is_created_in_every_version(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    (result,) = await create(client, CreatableTopic("t", 3, 2), version=version)
    assert (result.name, result.error_code, result.error_message) == ("t", ErrorCode.NONE, None)
    topic = cluster.topic("t")
    assert len(topic.partitions) == 3
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 2)
    assert result.topic_id == (topic.id if version >= 7 else ZERO_UUID)


async def test_the_answer_has_configs_with_their_sources(cluster: EmbeddedCluster, client: RawClient) -> None:
    configs = [CreatableTopicConfig("max.message.bytes", "5000"), CreatableTopicConfig("retention.ms", "1")]
    (result,) = await create(client, CreatableTopic("t", -1, -1, configs=configs))
    described = {config.name: (config.value, config.config_source) for config in result.configs}
    assert described["max.message.bytes"] == ("5000", 1)
    assert described["retention.ms"] == ("1", 1)
    assert described["min.insync.replicas"] == ("1", 5)
    assert cluster.topic("t").config.max_message_bytes == 5000


async def test_only_validate(cluster: EmbeddedCluster, client: RawClient) -> None:
    for _ in range(2):
        (result,) = await create(client, CreatableTopic("t", 2, 1), validate_only=True)
        assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 2)
    (result,) = await create(client, CreatableTopic("t", 2, 1))
    assert result.error_code == ErrorCode.NONE


@TWO_NODES
async def test_replicas_as_assigned(cluster: EmbeddedCluster, client: RawClient) -> None:
    assignments = [CreatableReplicaAssignment(1, [0, 1]), CreatableReplicaAssignment(0, [1, 0])]
    (result,) = await create(client, CreatableTopic("t", -1, -1, assignments))
    assert result.error_code == ErrorCode.NONE
    assert [cluster.leader("t", index) for index in range(2)] == [1, 0]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (CreatableTopic("there", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (CreatableTopic("no/name", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("t", 1, 1, [CreatableReplicaAssignment(0, [0])]), ErrorCode.INVALID_REQUEST),
        (CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(1, [0])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [5])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("t", 1, 1, configs=[CreatableTopicConfig("no.config", "1")]), ErrorCode.INVALID_CONFIG),
        (CreatableTopic("t", 1, 1, configs=[CreatableTopicConfig("segment.bytes", None)]), ErrorCode.INVALID_CONFIG),
    ],
)
async def test_an_impossible_topic_is_refused_and_the_others_are_created(
    cluster: EmbeddedCluster, client: RawClient, topic: CreatableTopic, error: ErrorCode
) -> None:
    cluster.create_topic("there")
    bad, good = await create(client, topic, CreatableTopic("good", 1, 1))
    assert bad.error_code == error
    assert bad.error_message
    assert good.error_code == ErrorCode.NONE


async def test_a_name_twice(cluster: EmbeddedCluster, client: RawClient) -> None:
    (result,) = await create(client, CreatableTopic("t", 1, 1), CreatableTopic("t", 2, 1))
    assert result.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize("partitions", [(2**31 - 1,), (10_001,), (5000, 5001), (-1, 10_000)])
async def test_no_more_than_10_000_partitions_in_one_request_as_in_kafka(
    cluster: EmbeddedCluster, client: RawClient, partitions: tuple[int, ...], validate_only: bool
) -> None:
    wanted = [CreatableTopic(f"t{number}", count, 1) for number, count in enumerate(partitions)]
    results = await create(client, *wanted, validate_only=validate_only)
    assert [result.error_code for result in results] == [ErrorCode.POLICY_VIOLATION] * len(partitions)
    assert cluster.topics == []


async def test_as_many_as_are_allowed_and_the_client_may_leave(
    cluster: EmbeddedCluster, client: RawClient, connect: Connect
) -> None:
    wanted = [CreatableTopic("large", 9_999, 1), CreatableTopic("small", 1, 1)]
    await client.send(CreateTopicsRequest(wanted), 7)
    await client.close()
    other = await connect()
    while len(cluster.topics) < 2:
        await other.request(MetadataRequest([]), 13)
    assert {topic.name: len(topic.partitions) for topic in cluster.topics} == {"large": 9_999, "small": 1}
    assert set(map(cluster.leader, ["large"] * 9_999, range(9_999))) == {0}
