from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs.config_changes import OpType
from aioproducer.errors import InvalidRequestException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from aioproducer.protocol.messages.metadata import MetadataRequest
from tests.broker.raw_clients.raw_client import RawClient
from tests.support.virtual_time import World, virtual

ONE, TWO = "PLAINTEXT://:0", "PLAINTEXT://:0,INTERNAL://:0"
STATIC = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,SECURE:SSL"}
BROKER = 4


@pytest.fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(**{"configs": STATIC, **getattr(request, "param", {})}) as cluster:
        yield cluster


async def change(cluster: EmbeddedCluster, node_id: int = 0, **configs: object) -> None:
    """By Python, and done when it returns."""
    cluster.alter_broker_configs({name.replace("__", "."): value for name, value in configs.items()}, node_id=node_id)
    await cluster.listeners_changed()


async def alter(client: RawClient, *changes: tuple[str, int, str | None], node: str = "0") -> ErrorCode:
    """By IncrementalAlterConfigs."""
    resource = AlterConfigsResource(BROKER, node, [AlterableConfig(*one) for one in changes])
    (answer,) = (await client.request(IncrementalAlterConfigsRequest([resource]), 1)).responses
    return ErrorCode(answer.error_code)


@contextlib.asynccontextmanager
async def connected(cluster: EmbeddedCluster, listener: str = "PLAINTEXT", node: int = 0) -> AsyncIterator[RawClient]:
    host, port = cluster.listener(node, listener)
    client = await RawClient.connect(f"{host}:{port}")
    try:
        yield client
    finally:
        await client.close()


async def bootstrap_servers(client: RawClient) -> str:
    brokers = (await client.request(MetadataRequest([]), 13)).brokers
    return ",".join(f"{node.host}:{node.port}" for node in brokers)


async def test_a_listener_is_added_and_removed(cluster: EmbeddedCluster) -> None:
    async with connected(cluster) as admin:
        before = cluster.bootstrap_servers
        assert await alter(admin, ("listeners", OpType.SET, TWO)) is ErrorCode.NONE
        await cluster.listeners_changed()
        async with connected(cluster, "INTERNAL") as client:
            assert await bootstrap_servers(client) == cluster.bootstrap_servers_of("INTERNAL") != before
            assert await bootstrap_servers(admin) == before == cluster.bootstrap_servers
            host, port = cluster.listener(0, "INTERNAL")
            assert await alter(admin, ("listeners", OpType.SUBTRACT, "INTERNAL://:0")) is ErrorCode.NONE
            await cluster.listeners_changed()
            assert await client.is_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, port)
        with pytest.raises(ValueError, match="there is no listener INTERNAL, only PLAINTEXT"):
            cluster.bootstrap_servers_of("INTERNAL")
        assert await bootstrap_servers(admin) == before, "its connection has seen nothing of it"


async def test_a_client_that_removes_its_own_listener_is_answered_first(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    await change(cluster, listeners=TWO)
    async with connected(cluster, "INTERNAL") as client, connected(cluster, "INTERNAL") as consumer:
        partition = FetchPartition(partition=0, partition_max_bytes=1000)
        wanted = FetchRequest(
            max_wait_ms=50, min_bytes=1, topics=[FetchTopic(topic_id=cluster.topic("t").id, partitions=[partition])]
        )
        await consumer.send(wanted, 13)
        while not cluster.delayed_fetches:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)
        assert await alter(client, ("listeners", OpType.SET, ONE)) is ErrorCode.NONE
        assert await client.is_closed()
        _, answer = await consumer.receive(FetchRequest.API_KEY, 13)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
        assert await consumer.is_closed()


@virtual
async def test_a_clean_stop_waits_a_second_at_most(world: World) -> None:
    from aioproducer.testing.simulation.listening import listen_on_network

    loop = asyncio.get_running_loop()
    async with EmbeddedCluster(configs=STATIC, listen=listen_on_network) as cluster:
        cluster.create_topic("t")
        await change(cluster, listeners=TWO)
        async with connected(cluster, "INTERNAL") as consumer:
            partition = FetchPartition(partition=0, partition_max_bytes=1000)
            topics = [FetchTopic(topic_id=cluster.topic("t").id, partitions=[partition])]
            await consumer.send(FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics), 13)
            while not cluster.delayed_fetches:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.001)
            began = loop.time()
            await change(cluster, listeners=ONE)
            assert 0.9 < loop.time() - began < 1.5
            assert await consumer.is_closed()


REFUSED = [
    ({"listeners": "INTERNAL://:0"}, "'inter.broker.listener.name': there is no listener PLAINTEXT"),
    ({"listeners": ""}, "'listeners': it is empty"),
    ({"listeners": "PLAINTEXT"}, "'PLAINTEXT' is not NAME://host:port"),
    ({"listeners": "PLAINTEXT://:9092"}, "the listener PLAINTEXT is open, and where it listens cannot change"),
    ({"listeners": "PLAINTEXT://:0,OTHER://:0"}, "it has no protocol for the listener OTHER"),
    ({"listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT"}, "its security protocol cannot change"),
    ({"advertised.listeners": "PLAINTEXT://a:1,OTHER://a:2"}, "OTHER is not among listeners"),
    ({"listeners": TWO, "advertised.listeners": "INTERNAL://a:2"}, "PLAINTEXT is not advertised"),
    ({"listeners": "PLAINTEXT://:0,SECURE://:0"}, "'ssl.keystore.location': it is missing"),
    ({"listener.name.plaintext.ssl.client.auth": "required"}, "its ssl.client.auth cannot change"),
    ({"listener.name.internal.max.connections": 1}, "there is no listener INTERNAL: listeners has PLAINTEXT"),
    ({"inter.broker.listener.name": "PLAINTEXT"}, "cannot be changed while the broker runs"),
]


@pytest.mark.parametrize(("configs", "message"), REFUSED)
async def test_invalid_values_are_refused(cluster: EmbeddedCluster, configs: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequestException, match=message):
        cluster.alter_broker_configs(configs, node_id=0)
    await cluster.listeners_changed()
    async with connected(cluster) as client:
        assert await bootstrap_servers(client) == cluster.bootstrap_servers
        resource = DescribeConfigsResource(BROKER, "0", ["listeners", "advertised.listeners"])
        (result,) = (await client.request(DescribeConfigsRequest([resource]), 4)).results
        assert [(one.value, one.read_only) for one in result.configs] == [(ONE, False), ("", False)]


@pytest.mark.parametrize("name", ["listeners", "advertised.listeners", "listener.security.protocol.map"])
async def test_each_node_has_its_own(cluster: EmbeddedCluster, name: str) -> None:
    with pytest.raises(InvalidRequestException, match=f"only for single nodes, not for all: .*{name}"):
        cluster.alter_broker_configs({name: "PLAINTEXT://:0"})


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
async def test_a_node_that_has_a_listener_and_one_that_has_not(cluster: EmbeddedCluster) -> None:
    await change(cluster, 1, listeners=TWO)
    host, port = cluster.listener(1, "INTERNAL")
    assert cluster.bootstrap_servers_of("INTERNAL") == f"{host}:{port}"
    async with connected(cluster, "INTERNAL", node=1) as client:
        assert await bootstrap_servers(client) == f"{host}:{port}"
    await cluster.stop_node(1)
    await cluster.start_node(1)
    assert cluster.listener(1, "INTERNAL") == (host, port), "it has its port again"


async def test_clients_get_new_advertised_listeners_at_once(cluster: EmbeddedCluster) -> None:
    async with connected(cluster) as client:
        shown = "PLAINTEXT://kafka.example:7000"
        assert await alter(client, ("advertised.listeners", OpType.SET, shown)) is ErrorCode.NONE
        assert await bootstrap_servers(client) == "kafka.example:7000"
        assert await alter(client, ("advertised.listeners", OpType.DELETE, None)) is ErrorCode.NONE
        assert await bootstrap_servers(client) == ":".join(map(str, cluster.listener(0)))


async def test_a_port_that_is_taken(cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with caplog.at_level(logging.ERROR), pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            await change(cluster, listeners=f"PLAINTEXT://:0,INTERNAL://:{port}")
        assert "node 0 cannot open listener INTERNAL: " in caplog.text
        async with connected(cluster) as client:
            assert await bootstrap_servers(client) == cluster.bootstrap_servers
    await change(cluster, message__max__bytes=1000)  # every change is another attempt
    assert cluster.listener(0, "INTERNAL") == ("127.0.0.1", port)


async def test_its_limits_come_and_go_with_it(cluster: EmbeddedCluster) -> None:
    own = {"listener__name__internal__max__connections": 1, "listener__name__internal__num__network__threads": 2}
    await change(cluster, listeners=TWO, **own)
    assert len(cluster._servers[0].sockets.acceptors["INTERNAL"].processors) == 2
    async with connected(cluster, "INTERNAL") as first, connected(cluster, "INTERNAL") as second:
        assert await bootstrap_servers(first)
        await second.send(MetadataRequest([]), 13)  # and waits for a place
        await change(cluster, listeners=ONE)
        assert await first.is_closed()
        assert await second.is_closed(), "it is not admitted when the first one closes"
    await change(cluster, listeners=TWO)
    async with connected(cluster, "INTERNAL") as first, connected(cluster, "INTERNAL") as second:
        assert (
            await bootstrap_servers(first)
            == await bootstrap_servers(second)
            == cluster.bootstrap_servers_of("INTERNAL")
        )


async def test_a_restart_of_the_cluster_keeps_them(tmp_path: Path) -> None:
    async with EmbeddedCluster(configs=STATIC, data_dir=tmp_path) as cluster:
        await change(cluster, listeners=TWO)
    async with EmbeddedCluster(configs=STATIC, data_dir=tmp_path) as cluster, connected(cluster, "INTERNAL") as client:
        assert await bootstrap_servers(client) == cluster.bootstrap_servers_of("INTERNAL")


@pytest.mark.parametrize("clean", [True, False])
async def test_a_node_stops_while_a_listener_is_removed(cluster: EmbeddedCluster, clean: bool) -> None:
    await change(cluster, listeners=TWO)
    async with connected(cluster, "INTERNAL") as client:
        await bootstrap_servers(client)
        cluster.alter_broker_configs({"listeners": ONE}, node_id=0)
        await asyncio.sleep(0)
        await cluster.stop_node(0, clean=clean)
        assert await client.is_closed()
    await cluster.start_node(0)
    async with connected(cluster) as client:
        assert await bootstrap_servers(client) == cluster.bootstrap_servers


async def test_changes_come_faster_than_they_are_made(cluster: EmbeddedCluster) -> None:
    for listeners in (TWO, ONE, TWO, ONE, TWO):
        cluster.alter_broker_configs({"listeners": listeners}, node_id=0)
        await asyncio.sleep(0)
    await cluster.listeners_changed()
    async with connected(cluster, "INTERNAL") as client:
        assert await bootstrap_servers(client) == cluster.bootstrap_servers_of("INTERNAL")
