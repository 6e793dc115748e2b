from __future__ import annotations

import asyncio
import gc
import socket

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import ConfigException, IllegalStateException, UnknownTopicOrPartitionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from .raw_clients.batches import make_batch
from .raw_clients.raw_client import RawClient


async def test_each_node_has_a_port_of_its_own() -> None:
    async with EmbeddedCluster(nodes=3) as cluster:
        servers = cluster.bootstrap_servers.split(",")
        assert len(set(servers)) == 3
        for server in servers:
            client = await RawClient.connect(server)
            response = await client.request(MetadataRequest([]), 13)
            assert [f"{node.host}:{node.port}" for node in response.brokers] == servers
            assert response.cluster_id == cluster.cluster_id
            await client.close()


async def test_the_ports_may_be_given() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with EmbeddedCluster(ports=[port]) as cluster:
        assert cluster.bootstrap_servers == f"127.0.0.1:{port}"


async def test_a_name_for_a_host() -> None:
    async with EmbeddedCluster(host="localhost") as cluster:
        client = await RawClient.connect(cluster.bootstrap_servers)
        assert (await client.request(MetadataRequest([]), 13)).brokers[0].host == "localhost"
        await client.close()


async def test_nodes_stand_in_racks() -> None:
    async with EmbeddedCluster(nodes=3, racks=["a", None, "b"]) as cluster:
        client = await RawClient.connect(cluster.bootstrap_servers.split(",")[0])
        response = await client.request(MetadataRequest([]), 13)
        assert [node.rack for node in response.brokers] == ["a", None, "b"]
        await client.close()


@pytest.mark.parametrize("arguments", [{"nodes": 0}, {"nodes": 2, "ports": [0]}, {"nodes": 2, "racks": ["a"]}])
def test_impossible_clusters(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        EmbeddedCluster(**arguments)  # type: ignore[arg-type]


def test_impossible_configs() -> None:
    with pytest.raises(ConfigException, match=r"num\.partitions"):
        EmbeddedCluster(configs={"num.partition": 1})


async def test_nothing_is_left_when_it_is_closed() -> None:
    tasks = asyncio.all_tasks()
    cluster = EmbeddedCluster(nodes=2)
    for _ in range(2):
        await cluster.start()
        client = await RawClient.connect(cluster.bootstrap_servers.split(",")[0])
        await client.request(MetadataRequest([]), 13)
        idle = await RawClient.connect(cluster.bootstrap_servers.split(",")[1])
        await cluster.close()
        assert await client.is_closed()
        assert await idle.is_closed()
        await client.close()
        await idle.close()
        assert cluster.bootstrap_servers == ""
    await cluster.close()
    assert asyncio.all_tasks() == tasks
    gc.collect()  # would warn of a socket that is still open


async def test_a_stop_in_good_order_answers_all_that_was_received() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("t")
        client = await RawClient.connect(cluster.bootstrap_servers)
        topic = FetchTopic("t", cluster.topic("t").id, [FetchPartition(0, partition_max_bytes=1000)])
        _, fetch = client.frame(FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[topic]), 13)
        _, metadata = client.frame(MetadataRequest([]), 13)
        await client.send_bytes(fetch + metadata)
        while not cluster.delayed_fetches:  # noqa: ASYNC110
            await asyncio.sleep(0)
    _, fetched = await client.receive(ApiKey.FETCH, 13)
    assert fetched.error_code == ErrorCode.NONE
    await client.receive(ApiKey.METADATA, 13)
    assert await client.is_closed()
    await client.close()


async def test_a_node_that_cannot_start_leaves_none_running() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cluster = EmbeddedCluster(nodes=2, ports=[0, port])
        with pytest.raises(OSError, match=str(port)):
            await cluster.start()
        assert cluster.bootstrap_servers == ""


async def test_a_node_stops_and_comes_back_with_its_records_on_its_port() -> None:
    async with EmbeddedCluster(nodes=2) as cluster:
        cluster.create_topic("t", replication_factor=2)
        servers = cluster.bootstrap_servers
        client = await RawClient.connect(servers.split(",")[0])
        data = TopicProduceData("t", partition_data=[PartitionProduceData(0, make_batch(b"a"))])
        await client.request(ProduceRequest(acks=-1, topic_data=[data]), 12)
        await cluster.stop_node(0)
        assert await client.is_closed()
        await client.close()
        assert cluster.leader("t") == 1
        with pytest.raises(OSError):
            await RawClient.connect(servers.split(",")[0])

        fetch = FetchRequest(topics=[FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=1000)])])
        client = await RawClient.connect(servers.split(",")[1])
        (answer,) = (await client.request(fetch, 12)).responses[0].partitions
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 1)
        await client.close()

        await cluster.start_node(0)
        assert cluster.bootstrap_servers == servers
        client = await RawClient.connect(servers.split(",")[0])
        assert len((await client.request(MetadataRequest([]), 13)).brokers) == 2
        await client.close()


async def test_a_node_comes_back_on_another_port() -> None:
    async with EmbeddedCluster(nodes=2) as cluster:
        first, second = cluster.bootstrap_servers.split(",")
        await cluster.stop_node(1)
        await cluster.start_node(1, port=0)
        same, moved = cluster.bootstrap_servers.split(",")
        assert same == first
        assert moved != second


async def test_nodes_are_started_and_stopped_once() -> None:
    async with EmbeddedCluster() as cluster:
        with pytest.raises(IllegalStateException):
            await cluster.start_node(0)
        with pytest.raises(ValueError):
            await cluster.start_node(1)
        await cluster.stop_node(0)
        with pytest.raises(IllegalStateException):
            await cluster.stop_node(0)


async def test_the_contents_that_tests_read() -> None:
    async with EmbeddedCluster(nodes=2) as cluster:
        topic = cluster.create_topic("t", 2, configs={"max_message_bytes": 500, "retention.ms": 7})
        assert cluster.topic("t") is topic
        assert topic.config.max_message_bytes == 500
        assert cluster.log("t", 1) is topic.partitions[1].log
        assert [cluster.leader("t", index) for index in range(2)] == [0, 1]
        cluster.move_leader("t", 0, 1)
        assert cluster.leader("t") == 1
        cluster.delete_topic("t")
        for lookup in (cluster.topic, cluster.log, cluster.leader):
            with pytest.raises(UnknownTopicOrPartitionException):
                lookup("t")


async def test_a_node_is_started_again_while_it_stops() -> None:
    async with EmbeddedCluster() as cluster:
        client = await RawClient.connect(cluster.bootstrap_servers)
        stopping = asyncio.create_task(cluster.stop_node(0))
        await asyncio.sleep(0)
        await cluster.start_node(0)
        await stopping
        await client.close()
        assert cluster.bootstrap_servers


async def test_pools_are_resized_while_clients_are_served() -> None:
    async with EmbeddedCluster() as cluster:
        client = await RawClient.connect(cluster.bootstrap_servers)
        for threads in (6, 12, 6, 3, 2):
            cluster.alter_broker_configs({"num.network.threads": threads, "num.io.threads": threads + 2})
            server = cluster._servers[0]
            assert (len(server.sockets.processors), server.handlers.size) == (threads, threads + 2)
            other = await RawClient.connect(cluster.bootstrap_servers)
            assert (await other.request(MetadataRequest([]), 13)).brokers
            await other.close()
        await client.close()
