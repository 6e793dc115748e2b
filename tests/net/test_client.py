from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from aioproducer.config import producer_config
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ClusterAuthorizationException, NetworkException, TimeoutException
from aioproducer.net.broker_link import BrokerLink, LinkState
from aioproducer.net.client import KafkaClient
from aioproducer.net.supervisor import Supervisor
from aioproducer.protocol.api_keys import ApiKey
from aioproducer.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.scripted_broker import ScriptedBroker, ScriptedCluster, after, drop, edited, error, never
from tests.support.virtual_time import World, virtual

INIT = InitProducerIdRequest(transactional_id=None)


class Watched:
    """A client, and what it told."""

    def __init__(self, servers: str, **config: Any) -> None:
        self.crashes: list[BaseException] = []
        self.metadata_arrived = asyncio.Event()
        self.links: list[tuple[int, LinkState]] = []
        self.supervisor = Supervisor(self.crashes.append)
        self.client = KafkaClient(
            producer_config({"bootstrap.servers": servers, **config}),
            self.supervisor,
            Random(1),
            on_link=lambda link: self.links.append((link.node_id, link.state)),
            on_metadata=self.metadata_arrived.set,
        )

    async def metadata(self) -> None:
        """Returns when the next metadata has come."""
        self.metadata_arrived.clear()
        await self.metadata_arrived.wait()

    async def stop(self, grace: float = 0.0) -> None:
        await self.supervisor.stop()
        await self.client.close(grace)
        assert not self.crashes


@asynccontextmanager
async def watching(nodes: int = 1, **config: Any) -> AsyncIterator[tuple[ScriptedCluster, Watched, KafkaClient]]:
    """A client that knows its cluster."""
    async with ScriptedCluster(nodes) as cluster:
        watched = Watched(cluster.bootstrap_servers, **config)
        try:
            await watched.metadata()
            yield cluster, watched, watched.client
        finally:
            await watched.stop()


def link_to(client: KafkaClient, node: int) -> BrokerLink:
    link = client.link(node)
    assert link is not None
    return link


async def ask(client: KafkaClient, node: int | None = None) -> MetadataResponse:
    return await client.request(MetadataRequest(topics=[]), MetadataResponse, node_id=node)


@virtual
async def test_the_cluster_is_found_by_one_of_its_brokers(world: World) -> None:
    async with ScriptedCluster(3) as cluster:
        watched = Watched(cluster.bootstrap_servers.split(",")[1])
        await watched.metadata()
        assert sorted(watched.client.metadata.cluster.nodes) == [0, 1, 2]
        assert (await ask(watched.client, 2)).cluster_id == cluster.cluster_id
        await watched.stop()


@virtual
async def test_bootstrap_connections_rest_when_the_cluster_is_known(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with watching(2) as (cluster, _, client):
        await ask(client)
        await asyncio.sleep(100)
        assert [link.node_id for link in client._links.values() if link.ready()] in ([0], [1])
        assert sum(len(broker.connections) for broker in cluster.brokers) == 1
        assert not [record for record in caplog.records if record.name.startswith("aioproducer.net")]


@virtual
async def test_a_request_goes_to_the_least_busy_broker(world: World) -> None:
    async with watching(2) as (cluster, _, client):
        await ask(client, 0)
        await ask(client, 1)
        cluster.brokers[0].always(ApiKey.INIT_PRODUCER_ID, never())
        cluster.brokers[1].always(ApiKey.INIT_PRODUCER_ID, never())
        calls = [asyncio.ensure_future(client.request(INIT, InitProducerIdResponse)) for _ in range(6)]
        await asyncio.sleep(1)
        assert [link_to(client, node).in_flight() for node in range(2)] == [3, 3]
        for call in calls:
            call.cancel()


@virtual
async def test_a_node_that_is_none(world: World) -> None:
    async with watching() as (_, _, client):
        with pytest.raises(NetworkException, match="node 7 is not among the brokers"):
            await ask(client, 7)


@virtual
async def test_a_request_without_an_answer_times_out_and_says_why(world: World) -> None:
    async with watching() as (cluster, _, client):
        cluster.broker.always(ApiKey.INIT_PRODUCER_ID, never())
        with pytest.raises((TimeoutException, NetworkException), match=r"request\.timeout\.ms"):
            await client.request(INIT, InitProducerIdResponse)
        await cluster.stop_node(0)
        await asyncio.sleep(1)
        with pytest.raises(TimeoutException, match=r"no broker can be reached: .*Connection refused"):
            await client.request(INIT, InitProducerIdResponse)


@virtual
async def test_the_version_spoken_may_be_bounded(world: World) -> None:
    async with watching() as (cluster, _, client):
        request = CreateTopicsRequest()
        await client.request(request, CreateTopicsResponse, at_most=3)
        assert cluster.broker.requests[-1][0].api_version == 3


@virtual
async def test_unreachable_says_what_stands_in_the_way(world: World) -> None:
    watched = Watched("10.1.1.1:1,10.1.1.2:2")
    assert watched.client.unreachable() == "no broker has answered yet"
    await asyncio.sleep(5)
    assert "10.1.1.1:1" in watched.client.unreachable()
    assert "10.1.1.2:2" in watched.client.unreachable()
    await watched.stop()
    async with watching() as (_, _, client):
        assert client.unreachable() == ""


@virtual
async def test_metadata_that_fails_is_asked_for_again_and_the_cause_kept(world: World) -> None:
    async with watching() as (cluster, watched, client):
        cluster.broker.script(ApiKey.METADATA, drop(), error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        client.request_update()
        await cluster.broker.received(ApiKey.METADATA, 2)
        await asyncio.sleep(0.05)
        assert "METADATA" in str(client.metadata_error)
        await watched.metadata()
        assert client.metadata_error is None


@virtual
async def test_a_cluster_that_refuses_metadata_says_so(world: World) -> None:
    def refused(response: Any) -> None:
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    async with ScriptedCluster() as cluster:
        cluster.broker.always(ApiKey.METADATA, edited(refused))
        watched = Watched(cluster.bootstrap_servers)
        await cluster.broker.received(ApiKey.METADATA, 3)
        assert isinstance(watched.client.metadata_error, ClusterAuthorizationException)
        await watched.stop()


# Brokers that come, go and move


@virtual
async def test_a_broker_that_has_moved_is_found_at_its_new_address(world: World) -> None:
    async with watching(2) as (cluster, watched, client):
        await ask(client, 0)
        await ask(client, 1)
        before = link_to(client, 0).address
        await cluster.stop_node(0)
        await cluster.start_node(0, port=0)
        client.request_update()
        while link_to(client, 0).address == before:
            await watched.metadata()
        assert (await ask(client, 0)).cluster_id == cluster.cluster_id


@virtual
async def test_a_broker_that_has_gone_is_forgotten_but_what_is_under_way_there_is_answered(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with watching(2) as (cluster, watched, client):
        await ask(client, 1)
        gate = asyncio.Event()
        cluster.brokers[0].script(ApiKey.INIT_PRODUCER_ID, after(gate))
        call = asyncio.ensure_future(client.request(INIT, InitProducerIdResponse, node_id=0))
        await cluster.brokers[0].received(ApiKey.INIT_PRODUCER_ID)
        waiting = asyncio.ensure_future(_never_there(client))
        cluster._state._alive.pop(0)  # as a broker that shuts down in its own time
        client.request_update()
        while client.link(0) is not None:
            await watched.metadata()
        with pytest.raises(NetworkException, match="node 0"):
            await waiting
        gate.set()
        assert (await call).error_code == ErrorCode.NONE
        await asyncio.sleep(1)
        assert not [r for r in caplog.records if "node 0" in r.getMessage()]


async def _never_there(client: KafkaClient) -> None:
    link_to(client, 0).want = lambda: None  # type: ignore[method-assign]
    link_to(client, 0).ready = lambda: False  # type: ignore[method-assign]
    await ask(client, 0)


@virtual
async def test_a_client_that_ends_while_a_forgotten_broker_owes_an_answer_leaves_nothing(world: World) -> None:
    async with watching(2) as (cluster, watched, client):
        await ask(client, 1)
        cluster.brokers[0].script(ApiKey.INIT_PRODUCER_ID, never())
        call = asyncio.ensure_future(client.request(INIT, InitProducerIdResponse, node_id=0))
        await cluster.brokers[0].received(ApiKey.INIT_PRODUCER_ID)
        cluster._state._alive.pop(0)
        client.request_update()
        while client.link(0) is not None:
            await watched.metadata()
        await watched.stop()
        with pytest.raises(NetworkException):
            await call


async def _none_soon(cluster: ScriptedCluster) -> bool:
    await asyncio.sleep(1)
    return not any(broker.connections for broker in cluster.brokers)


@virtual
async def test_when_no_known_broker_is_left_the_bootstrap_servers_are_asked(world: World) -> None:
    async with ScriptedCluster() as cluster:
        door = ScriptedBroker(0, cluster._state)
        watched = Watched(f"127.0.0.1:{await door.open('127.0.0.1', 0)}")
        await watched.metadata()
        await ask(watched.client, 0)
        await cluster.stop_node(0)
        before = link_to(watched.client, 0).address
        await cluster.start_node(0, port=0)
        while link_to(watched.client, 0).address == before:
            await watched.metadata()
        assert (await ask(watched.client, 0)).cluster_id == cluster.cluster_id
        await watched.stop()
        await door.close()


@virtual
async def test_a_lost_broker_makes_metadata_due_and_a_resting_one_does_not(world: World) -> None:
    config = {"metadata.max.age.ms": 10**9, "connections.max.idle.ms": 50_000}
    async with watching(**config) as (cluster, _, client):
        await ask(client, 0)
        asked = cluster.broker.count(ApiKey.METADATA)
        await asyncio.sleep(1000)
        assert not cluster.broker.connections
        assert cluster.broker.count(ApiKey.METADATA) == asked
        await ask(client, 0)
        cluster.broker.script(ApiKey.INIT_PRODUCER_ID, drop())
        with pytest.raises(NetworkException):
            await client.request(INIT, InitProducerIdResponse)
        await asyncio.sleep(10)
        assert cluster.broker.count(ApiKey.METADATA) == asked + 2


@virtual
async def test_close_in_the_middle_of_anything(world: World) -> None:
    async with ScriptedCluster(2) as cluster:
        for step in range(30):
            watched = Watched(cluster.bootstrap_servers)
            call = asyncio.ensure_future(ask(watched.client, step % 2))
            await asyncio.sleep(step * 0.0004)
            await watched.stop()
            call.cancel()
            await asyncio.wait([call])
        assert await _none_soon(cluster)
