from __future__ import annotations

import pytest

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import (
    InvalidConfigurationException,
    InvalidPartitionsException,
    InvalidReplicationFactorException,
    InvalidTopicException,
    TopicDeletionDisabledException,
    TopicExistsException,
    UnknownTopicOrPartitionException,
)
from tests.admin.clusters import admin as admin
from tests.admin.clusters import cluster as cluster


async def test_create_describe_list_delete(admin: KafkaAdmin) -> None:
    await admin.create_topic(NewTopic("a", partitions=2, replication_factor=2, configs={"retention.ms": "1000"}))
    await admin.create_topic(NewTopic("b"))
    described = await admin.describe_topic("a")
    assert described.name == "a"
    assert described.topic_id.int != 0
    assert [info.partition for info in described.partitions] == [0, 1]
    assert all(set(info.replicas) == set(info.in_sync_replicas) == {0, 1} for info in described.partitions)
    assert described.replication_factor == 2
    listed = await admin.list_topics()
    assert list(listed) == ["a", "b"]
    assert listed["a"] == described
    assert len(listed["b"].partitions) == 3
    await admin.delete_topic("a")
    assert list(await admin.list_topics()) == ["b"]


async def test_the_cluster_is_described(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    described = await admin.describe_cluster()
    assert described.cluster_id == cluster.cluster_id
    assert [node.node_id for node in described.nodes] == [0, 1]
    assert [f"{node.host}:{node.port}" for node in described.nodes] == cluster.bootstrap_servers.split(",")
    assert described.controller in described.nodes


async def test_configs_arrive(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    await admin.create_topic(NewTopic("a", configs={"max.message.bytes": "1000"}))
    assert cluster.topic("a").config.max_message_bytes == 1000


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        (NewTopic("there"), TopicExistsException, "there"),
        (NewTopic("no/name"), InvalidTopicException, "no/name"),
        (NewTopic("t", partitions=0), InvalidPartitionsException, "0"),
        (NewTopic("t", replication_factor=3), InvalidReplicationFactorException, "3"),
        (NewTopic("t", configs={"retention.m": "1"}), InvalidConfigurationException, "retention"),
    ],
)
async def test_a_topic_that_cannot_be_created(
    admin: KafkaAdmin, cluster: EmbeddedCluster, topic: NewTopic, error: type[Exception], message: str
) -> None:
    cluster.create_topic("there")
    with pytest.raises(error, match=message):
        await admin.create_topic(topic)


async def test_a_failed_topic_hides_no_result_of_another(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    cluster.create_topic("there")
    created = await admin.create_topics([NewTopic("a"), NewTopic("there"), NewTopic("b")])
    assert [created["a"], type(created["there"]), created["b"]] == [None, TopicExistsException, None]
    described = await admin.describe_topics(["a", "nosuch"])
    assert type(described["nosuch"]) is UnknownTopicOrPartitionException
    deleted = await admin.delete_topics(["nosuch", "a"])
    assert [type(deleted["nosuch"]), deleted["a"]] == [UnknownTopicOrPartitionException, None]
    assert list(await admin.list_topics()) == ["b", "there"]


async def test_an_empty_request_does_nothing(admin: KafkaAdmin) -> None:
    assert await admin.create_topics([]) == await admin.delete_topics([]) == await admin.describe_topics([]) == {}


async def test_unknown_topics_are_not_created(admin: KafkaAdmin) -> None:
    with pytest.raises(UnknownTopicOrPartitionException, match="nosuch"):
        await admin.describe_topic("nosuch")
    with pytest.raises(UnknownTopicOrPartitionException, match="nosuch"):
        await admin.delete_topic("nosuch")
    assert await admin.list_topics() == {}


async def test_deletion_may_be_disabled() -> None:
    async with EmbeddedCluster(configs={"delete.topic.enable": "false"}) as cluster:
        cluster.create_topic("t")
        async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
            with pytest.raises(TopicDeletionDisabledException):
                await admin.delete_topic("t")


async def test_a_partition_without_leader_is_described(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", assignments=[[0], [1]])
    await cluster.stop_node(1)
    assert [info.leader for info in (await admin.describe_topic("t")).partitions] == [0, -1]
