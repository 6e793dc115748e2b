from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.configs.listener_users import jaas_listener
from aioproducer.broker.configs.listeners import listener_config, listeners_of
from aioproducer.errors import ConfigException, InvalidRequestException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_cluster import DescribeClusterRequest
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import RawClient

PROTOCOLS = "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,SECURE:SASL_SSL"
TWO = {"listeners": "PLAINTEXT://:0,INTERNAL://:0", "listener.security.protocol.map": PROTOCOLS}
SHOWN = {**TWO, "advertised.listeners": "PLAINTEXT://kafka.example:7000,INTERNAL://:0"}


def parse(listeners: str, advertised: str = "", protocols: str = PROTOCOLS, inter_broker: str | None = None) -> Any:
    return listeners_of(listeners.split(","), advertised.split(",") if advertised else (), protocols, inter_broker)


class TestConfigs:
    def test_the_default_is_one_on_a_free_port(self) -> None:
        assert BrokerConfig.of({}).listening.end_points == (EndPoint("PLAINTEXT", "", 0),)

    def test_names_count_in_any_case(self) -> None:
        found = parse("plaintext://:1,Internal://[::1]:2", "internal://:3", inter_broker="internal")
        assert found.end_points == (EndPoint("PLAINTEXT", "", 1), EndPoint("INTERNAL", "::1", 2))
        assert found.advertised == {"INTERNAL": EndPoint("INTERNAL", "", 3)}
        assert found.inter_broker == "INTERNAL"

    def test_the_ports_of_the_other_nodes_follow(self) -> None:
        found = parse("PLAINTEXT://a:9000,INTERNAL://:0", "PLAINTEXT://b:7000,INTERNAL://:0")
        assert found.of_node(2) == (EndPoint("PLAINTEXT", "a", 9002), EndPoint("INTERNAL", "", 0))
        opened = {"PLAINTEXT": EndPoint("PLAINTEXT", "a", 9002), "INTERNAL": EndPoint("INTERNAL", "c", 50000)}
        advertised = {"PLAINTEXT": EndPoint("PLAINTEXT", "b", 7002), "INTERNAL": EndPoint("INTERNAL", "c", 50000)}
        assert found.advertised_of_node(2, opened) == advertised

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("",), "'listeners': '' is not NAME://host:port"),
            (("PLAINTEXT",), "'listeners': 'PLAINTEXT' is not NAME://host:port"),
            (("PLAINTEXT://:65536",), "'listeners': 'PLAINTEXT://:65536' is not NAME://host:port"),
            (("PLAINTEXT://:1,plaintext://:2",), "'listeners': it has PLAINTEXT twice"),
            (("PLAINTEXT://:1,INTERNAL://:1",), "'listeners': two of them have the same port"),
            (("PLAINTEXT://:1", "OTHER://a:1"), "'advertised.listeners': OTHER is not among listeners: PLAINTEXT"),
            (("PLAINTEXT://0.0.0.0:1",), r"'advertised.listeners': clients cannot connect to 0\.0\.0\.0: give"),
            (("OTHER://:1",), "protocol.map': it has no protocol for the listener OTHER: add OTHER:PLAINTEXT"),
            (("PLAINTEXT://:1", "", "PLAINTEXT"), "'PLAINTEXT' is not NAME:PROTOCOL"),
            (("PLAINTEXT://:1", "", "PLAINTEXT:TLS"), "'PLAINTEXT:TLS' is not NAME:PROTOCOL"),
            (("PLAINTEXT://:1", "", "A:SSL,a:SSL"), "protocol.map': it has A twice"),
            (("INTERNAL://:1",), "'inter.broker.listener.name': there is no listener PLAINTEXT: .* one of INTERNAL"),
            (("PLAINTEXT://:1", "", PROTOCOLS, "X"), "'inter.broker.listener.name': there is no listener X"),
            (("PLAINTEXT://:1,INTERNAL://:2", "INTERNAL://:2"), "PLAINTEXT is not advertised"),
        ],
    )
    def test_invalid_values_are_refused(self, arguments: tuple[Any, ...], message: str) -> None:
        with pytest.raises(ConfigException, match=message):
            parse(*arguments)

    def test_an_empty_list_is_refused(self) -> None:
        with pytest.raises(ConfigException, match="'listeners': it is empty"):
            BrokerConfig.of({"listeners": ""})

    @pytest.mark.parametrize("second", [9092, 9093])
    def test_ports_that_two_nodes_would_share(self, second: int) -> None:
        listeners = f"PLAINTEXT://:9091,INTERNAL://:{second}"
        with pytest.raises(ConfigException, match="would have the same port"):
            EmbeddedCluster(3, configs={**TWO, "listeners": listeners})

    def test_a_port_there_is_not(self) -> None:
        with pytest.raises(ConfigException, match="listener PLAINTEXT of node 1 would have the port 65536"):
            EmbeddedCluster(2, configs={"listeners": "PLAINTEXT://:65535"})

    @pytest.mark.parametrize("also", [{"ports": [0]}, {"advertised": {0: ("a", 1)}}])
    def test_ports_are_said_once(self, also: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="leave ports and advertised out"):
            EmbeddedCluster(configs=TWO, **also)


class TestOfOne:
    """``listener.name.<name>.<config>``"""

    @pytest.mark.parametrize(
        "name", ["listener.name.internal.max.connections", "listener_name_internal_max_connections"]
    )
    def test_a_listeners_own(self, name: str) -> None:
        config = BrokerConfig.of({**TWO, name: "7"})
        assert config.of_listener("INTERNAL", "max.connections") == 7
        assert config.of_listener("PLAINTEXT", "max.connections") is None

    def test_underscores_in_its_name(self) -> None:
        listeners = {"listeners": "MY_OWN://:0", "listener.security.protocol.map": "MY_OWN:PLAINTEXT"}
        own = {"listener.name.my_own.num.network.threads": 2, "inter.broker.listener.name": "MY_OWN"}
        assert BrokerConfig.of({**listeners, **own}).network_threads("MY_OWN") == 2

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"listener.name.other.max.connections": 1},
                "there is no listener OTHER: listeners has PLAINTEXT, INTERNAL",
            ),
            ({"listener.name.internal.max.connections": -1}, r"'listener\.name\.internal\.max\.connections' is -1"),
            ({"listener.name.internal.num.partitions": 1}, "unknown broker config"),
            (
                {"listener.name.internal.max.connections": 1, "listener.name.INTERNAL.max.connections": 1},
                "is given twice",
            ),
        ],
    )
    def test_invalid_values_are_refused(self, given: dict[str, object], message: str) -> None:
        with pytest.raises(ConfigException, match=message):
            BrokerConfig.of({**TWO, **given})


@pytest.fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(**{"nodes": 3, "configs": TWO, **getattr(request, "param", {})}) as cluster:
        yield cluster


def with_configs(**more: object) -> pytest.MarkDecorator:
    configs = {**TWO, **{name.replace("__", "."): value for name, value in more.items()}}
    return pytest.mark.parametrize("cluster", [{"nodes": 1, "configs": configs}], indirect=True)


async def connect(cluster: EmbeddedCluster, listener: str, node: int = 0) -> RawClient:
    host, port = cluster.listener(node, listener)
    return await RawClient.connect(f"{host}:{port}")


def addresses_of(nodes: list[Any]) -> str:
    return ",".join(f"{node.host}:{node.port}" for node in nodes)


@pytest.mark.parametrize("listener", ["PLAINTEXT", "INTERNAL"])
async def test_a_client_gets_the_nodes_of_its_own_listener(cluster: EmbeddedCluster, listener: str) -> None:
    client = await connect(cluster, listener)
    servers = cluster.bootstrap_servers_of(listener)
    assert addresses_of((await client.request(MetadataRequest([]), 13)).brokers) == servers
    assert addresses_of((await client.request(DescribeClusterRequest(), 1)).brokers) == servers
    found = await client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=list("abcdefghijklmnop")), 6)
    assert {addresses_of([node]) for node in found.coordinators} == set(servers.split(","))

    cluster.create_topic("t", assignments=[(1,)])
    data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(0, make_batch(b"a"))])
    refused = await client.request(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 13)
    assert refused.responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert addresses_of(refused.node_endpoints) == servers.split(",")[1]
    await client.close()


async def test_each_listener_of_each_node_has_a_port(cluster: EmbeddedCluster) -> None:
    servers = [*cluster.bootstrap_servers.split(","), *cluster.bootstrap_servers_of("internal").split(",")]
    assert len(set(servers)) == 6
    assert cluster.bootstrap_servers == cluster.bootstrap_servers_of("PLAINTEXT")
    with pytest.raises(ValueError, match="there is no listener OTHER, only PLAINTEXT, INTERNAL"):
        cluster.bootstrap_servers_of("OTHER")
    await cluster.stop_node(1)
    await cluster.start_node(1)
    again = [*cluster.bootstrap_servers.split(","), *cluster.bootstrap_servers_of("internal").split(",")]
    assert again == servers


@pytest.mark.parametrize("cluster", [{"configs": SHOWN}], indirect=True)
async def test_clients_get_the_advertised_addresses(cluster: EmbeddedCluster) -> None:
    client = await connect(cluster, "PLAINTEXT")
    brokers = (await client.request(MetadataRequest([]), 13)).brokers
    assert addresses_of(brokers) == "kafka.example:7000,kafka.example:7001,kafka.example:7002"
    await client.close()
    own = [cluster.listener(node, "INTERNAL") for node in range(3)]
    assert cluster.bootstrap_servers_of("INTERNAL") == ",".join(f"{host}:{port}" for host, port in own)


@with_configs(advertised__listeners="PLAINTEXT://:0")
@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
async def test_a_listener_that_is_not_advertised(cluster: EmbeddedCluster, version: int, code: ErrorCode) -> None:
    cluster.create_topic("t")
    client = await connect(cluster, "INTERNAL")
    response = await client.request(MetadataRequest([MetadataRequestTopic(name="t")]), version)
    assert response.brokers == []
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.offline_replicas) == (code, -1, [0])
    found = await client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=["a"]), 6)
    assert [node.error_code for node in found.coordinators] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert (await client.request(DescribeClusterRequest(), 1)).brokers == []
    await client.close()


async def test_all_ports_or_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        other.close()
        configs = {**TWO, "listeners": f"PLAINTEXT://:{port},INTERNAL://:{taken.getsockname()[1]}"}
        cluster = EmbeddedCluster(configs=configs)
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{taken.getsockname()[1]}"):
            await cluster.start()
    with socket.create_server(("127.0.0.1", port)):
        await cluster.close()


@with_configs(listener__name__internal__max__connections=1)
async def test_a_listener_is_full_and_the_other_is_not(cluster: EmbeddedCluster) -> None:
    first, second = await connect(cluster, "INTERNAL"), await connect(cluster, "INTERNAL")
    await first.request(MetadataRequest([]), 13)
    for _ in range(2):
        client = await connect(cluster, "PLAINTEXT")
        await client.request(MetadataRequest([]), 13)
        await client.close()
    await second.send(MetadataRequest([]), 13)
    cluster.alter_broker_configs({"listener.name.internal.max.connections": 2})
    assert (await second.receive(MetadataRequest.API_KEY, 13))[1].brokers
    for client in (first, second):
        await client.close()


@with_configs(inter__broker__listener__name="INTERNAL", max__connections=1)
async def test_the_inter_broker_listener_has_another_one_make_room(cluster: EmbeddedCluster) -> None:
    client = await connect(cluster, "PLAINTEXT")
    await client.request(MetadataRequest([]), 13)
    node = await connect(cluster, "INTERNAL")
    await node.request(MetadataRequest([]), 13)
    assert await client.is_closed()
    await node.request(MetadataRequest([]), 13)
    for one in (client, node):
        await one.close()


@with_configs(listener__name__internal__num__network__threads=2)
async def test_network_threads_of_a_listener(cluster: EmbeddedCluster) -> None:
    def processors() -> dict[str, int]:
        acceptors = cluster._servers[0].sockets.acceptors
        return {name: len(acceptor.processors) for name, acceptor in acceptors.items()}

    assert processors() == {"PLAINTEXT": 3, "INTERNAL": 2}
    cluster.alter_broker_configs({"listener.name.plaintext.num.network.threads": 5})
    assert processors() == {"PLAINTEXT": 5, "INTERNAL": 2}
    with pytest.raises(InvalidRequestException, match=r"internal\.num\.network\.threads' is 2: .* not set it to 5"):
        cluster.alter_broker_configs({"listener.name.internal.num.network.threads": 5})
    cluster.alter_broker_configs({"listener.name.plaintext.num.network.threads": None, "num.network.threads": 4})
    assert processors() == {"PLAINTEXT": 4, "INTERNAL": 2}
    with pytest.raises(InvalidRequestException, match="there is no listener OTHER"):
        cluster.alter_broker_configs({"listener.name.other.num.network.threads": 5})


def test_a_name_that_is_too_long_is_none_of_a_listener() -> None:
    """Matching one takes time, and a request may have thousands."""
    for listener in ("x" * 900, "x" * 30_000):
        names = [f"listener.name.{listener}.{base}" for base in ("max.connections", "plain.sasl.jaas.config")]
        found = [listener_config(names[0]), jaas_listener(names[1])]
        assert found.count(None) == (0 if len(listener) < 1000 else 2)
