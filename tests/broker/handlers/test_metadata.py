from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.primitives import ZERO_UUID

from . import RawClient

THREE_NODES = pytest.mark.parametrize("cluster", [{"nodes": 3}], indirect=True)
NO_CREATION = pytest.mark.parametrize("cluster", [{"configs": {"auto.create.topics.enable": False}}], indirect=True)


def named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def identified(*ids: UUID) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(topic_id, None) for topic_id in ids]


@pytest.mark.parametrize("version", range(14))
@THREE_NODES
async def test_nodes_and_partitions_in_every_version(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    made = cluster.create_topic("orders", partitions=3, replication_factor=2)
    response = await client.request(MetadataRequest(named("orders")), version)
    assert [f"{node.host}:{node.port}" for node in response.brokers] == cluster.bootstrap_servers.split(",")
    assert [node.node_id for node in response.brokers] == [0, 1, 2]
    assert response.controller_id == (0 if version >= 1 else -1)
    assert response.cluster_id == (cluster.cluster_id if version >= 2 else None)
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (ErrorCode.NONE, "orders")
    assert topic.topic_id == (made.id if version >= 10 else ZERO_UUID)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
    assert [partition.leader_id for partition in topic.partitions] == [0, 1, 2]
    assert [partition.replica_nodes for partition in topic.partitions] == [[0, 1], [1, 2], [2, 0]]
    assert [partition.isr_nodes for partition in topic.partitions] == [[0, 1], [1, 2], [2, 0]]
    assert {partition.leader_epoch for partition in topic.partitions} == {0 if version >= 7 else -1}


@pytest.mark.parametrize(("version", "every"), [(0, []), (1, None), (13, None)])
async def test_all_topics(
    cluster: EmbeddedCluster, client: RawClient, version: int, every: list[MetadataRequestTopic] | None
) -> None:
    for name in ("a", "b"):
        cluster.create_topic(name)
    response = await client.request(MetadataRequest(every), version)
    assert [topic.name for topic in response.topics] == ["a", "b"]


async def test_no_topics(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("a")
    assert (await client.request(MetadataRequest([]), 1)).topics == []


@pytest.mark.parametrize("version", [12, 13])
async def test_by_id(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    known, unknown = cluster.create_topic("a").id, uuid4()
    response = await client.request(MetadataRequest(identified(known, unknown)), version)
    assert [(topic.error_code, topic.name, topic.topic_id) for topic in response.topics] == [
        (ErrorCode.NONE, "a", known),
        (ErrorCode.UNKNOWN_TOPIC_ID, None, unknown),
    ]


async def test_versions_10_and_11_do_not_know_ids(cluster: EmbeddedCluster, client: RawClient) -> None:
    topic_id = cluster.create_topic("a").id
    response = await client.request(MetadataRequest([MetadataRequestTopic(topic_id, None)]), 11)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]


async def test_neither_name_nor_id(client: RawClient) -> None:
    response = await client.request(MetadataRequest(identified(ZERO_UUID)), 12)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]


async def test_a_topic_named_twice_is_answered_once(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("a")
    response = await client.request(MetadataRequest(named("a", "a")), 9)
    assert [topic.name for topic in response.topics] == ["a"]


class TestAutoCreation:
    @pytest.mark.parametrize("cluster", [{"configs": {"num.partitions": 3}}], indirect=True)
    async def test_an_auto_created_topic_is_in_the_next_answer(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        (topic,) = (await client.request(MetadataRequest(named("new")), 9)).topics
        assert (topic.error_code, topic.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
        (topic,) = (await client.request(MetadataRequest(named("new")), 9)).topics
        assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 3)
        assert topic.topic_id == ZERO_UUID
        assert len(cluster.topic("new").partitions) == 3

    async def test_not_if_the_client_does_not_want_it(self, client: RawClient) -> None:
        request = MetadataRequest(named("new"), allow_auto_topic_creation=False)
        for _ in range(2):
            (topic,) = (await client.request(request, 9)).topics
            assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @NO_CREATION
    async def test_not_if_the_broker_does_not(self, client: RawClient) -> None:
        (topic,) = (await client.request(MetadataRequest(named("new")), 9)).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @pytest.mark.parametrize("allowed", [True, False])
    async def test_never_under_a_name_that_is_not_allowed(self, client: RawClient, allowed: bool) -> None:
        request = MetadataRequest(named("no/name"), allow_auto_topic_creation=allowed)
        (topic,) = (await client.request(request, 9)).topics
        assert (topic.error_code, topic.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "no/name")

    @pytest.mark.parametrize("cluster", [{"configs": {"default.replication.factor": 2}}], indirect=True)
    async def test_not_without_nodes_for_its_replicas(self, client: RawClient) -> None:
        (topic,) = (await client.request(MetadataRequest(named("new")), 9)).topics
        assert topic.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
async def test_a_stopped_node(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("one", partitions=2)
    cluster.create_topic("two", partitions=2, replication_factor=2)
    await cluster.stop_node(1)
    response = await client.request(MetadataRequest(named("one", "two")), 9)
    assert [node.node_id for node in response.brokers] == [0]
    one, two = response.topics
    assert [(p.error_code, p.leader_id, p.isr_nodes, p.offline_replicas) for p in one.partitions] == [
        (ErrorCode.NONE, 0, [0], []),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1, [], [1]),
    ]
    assert [(p.error_code, p.leader_id, p.isr_nodes, p.offline_replicas) for p in two.partitions] == [
        (ErrorCode.NONE, 0, [0], [1]),
        (ErrorCode.NONE, 0, [0], [1]),
    ]


async def test_authorized_operations(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("a")
    response = await client.request(MetadataRequest(named("a")), 8)
    assert response.cluster_authorized_operations == response.topics[0].topic_authorized_operations == -(2**31)
    request = MetadataRequest(
        named("a"), include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    response = await client.request(request, 8)
    assert response.cluster_authorized_operations == 8096
    assert response.topics[0].topic_authorized_operations == 3576
