from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.handlers import create_topics
from aioproducer.errors import (
    ConfigException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidConfigurationException,
    InvalidPartitionsException,
    InvalidReplicationFactorException,
    InvalidTopicException,
    NotControllerException,
    TimeoutException,
    TopicDeletionDisabledException,
    TopicExistsException,
    UnknownTopicOrPartitionException,
)
from aioproducer.testing.simulation.listening import listen_on_network
from tests.support.virtual_time import World, virtual

QUICK: Any = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}


@asynccontextmanager
async def running(**more: Any) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(nodes=2, configs={"num.partitions": 3}, **more) as cluster:
        yield cluster


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with running() as cluster:
        yield cluster


@pytest.fixture
async def admin(cluster: EmbeddedCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
        yield admin


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


async def test_one_that_fails_hides_no_other(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    cluster.create_topic("there")
    created = await admin.create_topics([NewTopic("a"), NewTopic("there"), NewTopic("b")])
    assert [created["a"], type(created["there"]), created["b"]] == [None, TopicExistsException, None]
    described = await admin.describe_topics(["a", "nosuch"])
    assert type(described["nosuch"]) is UnknownTopicOrPartitionException
    deleted = await admin.delete_topics(["nosuch", "a"])
    assert [type(deleted["nosuch"]), deleted["a"]] == [UnknownTopicOrPartitionException, None]
    assert list(await admin.list_topics()) == ["b", "there"]


async def test_nothing_asked_for_is_nothing_done(admin: KafkaAdmin) -> None:
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


async def test_another_controller_is_asked(admin: KafkaAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the broker says that it is not the controller, for one of two topics."""
    describe = create_topics._new_topic
    refusals = iter([True, True])

    def refuse(wanted: Any) -> Any:
        if wanted.name == "b" and next(refusals, False):
            raise NotControllerException("not the controller")
        return describe(wanted)

    monkeypatch.setattr(create_topics, "_new_topic", refuse)
    assert await admin.create_topics([NewTopic("a"), NewTopic("b")]) == {"a": None, "b": None}


@virtual
async def test_no_controller_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(listen=listen_on_network) as cluster:
        describe = create_topics._new_topic

        def refuse(wanted: Any) -> Any:
            if wanted.name == "b":
                raise NotControllerException("not the controller")
            return describe(wanted)

        monkeypatch.setattr(create_topics, "_new_topic", refuse)
        servers = cluster.bootstrap_servers
        async with KafkaAdmin(bootstrap_servers=servers, **QUICK, default_api_timeout_ms=100) as admin:
            created = await admin.create_topics([NewTopic("a"), NewTopic("b")])
            assert created["a"] is None
            assert type(created["b"]) is NotControllerException


async def test_asks_on_when_a_node_dies(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    await admin.create_topic(NewTopic("a"))
    await cluster.stop_node(0)
    await admin.create_topic(NewTopic("b"))
    assert list(await admin.list_topics()) == ["a", "b"]


@virtual
async def test_no_broker(world: World) -> None:
    async with running(listen=listen_on_network) as cluster:
        servers = cluster.bootstrap_servers
        await cluster.close()
        async with KafkaAdmin(bootstrap_servers=servers, **QUICK, default_api_timeout_ms=50) as admin:
            for call in (admin.list_topics(), admin.create_topic(NewTopic("t")), admin.delete_topic("t")):
                with pytest.raises(TimeoutException, match=r"default\.api\.timeout\.ms=50: no broker can be reached"):
                    await call


async def test_from_config(cluster: EmbeddedCluster) -> None:
    async with KafkaAdmin.from_config(f"bootstrap.servers={cluster.bootstrap_servers}\nclient.id=x") as admin:
        assert await admin.list_topics() == {}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "'bootstrap.servers' is missing"),
        (
            {"bootstrap_servers": "x:1", "client_ids": "x"},
            "unknown admin config 'client.ids'; did you mean 'client.id'",
        ),
        ({"bootstrap_servers": "x:1", "security_protocol": "TLS"}, "one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
        ({"bootstrap_servers": "nowhere"}, "nowhere"),
    ],
)
def test_wrong_configs(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        KafkaAdmin(**config)


async def test_misuse(admin: KafkaAdmin) -> None:
    with pytest.raises(IllegalArgumentException, match="twice"):
        await admin.create_topics([NewTopic("a"), NewTopic("a")])
    with pytest.raises(IllegalStateException, match="not started"):
        await KafkaAdmin(bootstrap_servers="x:1").list_topics()
