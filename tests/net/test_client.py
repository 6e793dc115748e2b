from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import (
    ClusterAuthorizationException,
    NetworkException,
    SaslAuthenticationException,
    TimeoutException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics import MetricsSnapshot
from aioproducer.metrics.network_metrics import NetworkMetrics
from aioproducer.metrics.registry import MetricRegistry
from aioproducer.net.broker_link import BrokerLink, LinkState
from aioproducer.net.client import KafkaClient
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Network, NetworkFaults
from aioproducer.testing.simulation.trace import Trace
from tests.support.compiled import interpreted_only
from tests.support.scripted_broker import (
    Exchange,
    ScriptedCluster,
    after,
    drop,
    edited,
    error,
    never,
    throttled,
)
from tests.support.security.scripted_sasl import AS_ALICE, authenticates_clients
from tests.support.virtual_time import World, virtual

from .test_host_addresses import resolver

INIT = InitProducerIdRequest(transactional_id=None)


class Watched:
    """A client, and what it reported."""

    def __init__(self, servers: str, **config: Any) -> None:
        self.crashes: list[BaseException] = []
        self.metadata_arrived = asyncio.Event()
        self.links: list[tuple[int, LinkState]] = []
        self.supervisor = Supervisor(self.crashes.append)
        self.registry = MetricRegistry()
        self.client = KafkaClient(
            producer_config({"bootstrap.servers": servers, **config}),
            self.supervisor,
            Random(1),
            on_link=lambda link: self.links.append((link.node_id, link.state)),
            on_metadata=self._arrived,
            metrics=NetworkMetrics(self.registry),
        )
        self.client.start()

    def _arrived(self) -> Generator[None, None, None]:
        self.metadata_arrived.set()
        yield

    def measured(self) -> MetricsSnapshot:
        return MetricsSnapshot(self.registry.values(asyncio.get_running_loop().time()))

    async def metadata(self) -> None:
        """Returns when the next metadata has come."""
        self.metadata_arrived.clear()
        await self.metadata_arrived.wait()

    async def refusal(self) -> None:
        """Raises the next error of an authentication."""
        while True:
            await self.client.changes.next()

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
    link = client.links.get(node)
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
        assert [link.node_id for link in client.links.values() if link.ready()] in ([0], [1])
        assert sum(len(broker.connections) for broker in cluster.brokers) == 1
        assert not [record for record in caplog.records if record.name.startswith("aioproducer.net")]


@virtual
async def test_a_bootstrap_connection_is_kept_while_the_known_brokers_authenticate_again(world: World) -> None:
    async with watching() as (_, watched, client):
        await ask(client)
        link = link_to(client, 0)
        link.reauthenticating = True
        connected = world.attempts
        for _ in range(3):
            client.request_update()
            await watched.metadata()
            await asyncio.sleep(1)
        assert world.attempts == connected + 1
        link.reauthenticating = False
        client.request_update()
        await watched.metadata()
        await asyncio.sleep(1)
        assert not link_to(client, -1).ready()


class Unwalked(dict[int, BrokerLink]):
    """Links that may be looked up one by one."""

    def values(self) -> Any:
        raise AssertionError("somebody walks through all links")


@virtual
async def test_a_change_of_one_link_walks_through_no_others(world: World) -> None:
    async with watching(3) as (cluster, watched, client):
        await ask(client, 0)
        await ask(client, 1)
        client.links = Unwalked(client.links)
        assert client.reachable()
        await cluster.stop_node(0)
        await asyncio.sleep(1)
        assert (0, LinkState.BACKOFF) in watched.links
        assert client.reachable(), "there is another"
        assert math.isnan(client.unreachable_since)
        client.links = dict(client.links)
        await cluster.stop_node(1)
        await cluster.stop_node(2)
        await asyncio.sleep(600)
        assert not client.reachable()
        assert client.unreachable_since < asyncio.get_running_loop().time()


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
async def test_brokers_with_as_little_to_do_take_turns(world: World) -> None:
    """A broker that times out and returns at once does not get request after request."""
    async with watching(3) as (cluster, _, client):
        for node in range(3):
            await ask(client, node)
        before = [broker.count(ApiKey.METADATA) for broker in cluster.brokers]
        for _ in range(6):
            await ask(client)
        assert [broker.count(ApiKey.METADATA) - 2 for broker in cluster.brokers] == before


@virtual
async def test_a_throttled_broker_gets_requests_last(world: World) -> None:
    async with watching(2) as (cluster, _, client):
        await ask(client, 0)
        await ask(client, 1)
        cluster.brokers[0].script(ApiKey.INIT_PRODUCER_ID, edited(throttled(60_000)))
        await client.request(INIT, InitProducerIdResponse, node_id=0)
        cluster.brokers[1].script(ApiKey.INIT_PRODUCER_ID, never())
        call = asyncio.ensure_future(client.request(INIT, InitProducerIdResponse, node_id=1))
        await cluster.brokers[1].received(ApiKey.INIT_PRODUCER_ID)
        before = [broker.count(ApiKey.METADATA) for broker in cluster.brokers]
        other = asyncio.ensure_future(ask(client))
        await asyncio.sleep(1)
        assert [broker.count(ApiKey.METADATA) for broker in cluster.brokers] == [before[0], before[1]]
        assert link_to(client, 1).in_flight() == 2, "it goes to the busy one"
        call.cancel()
        other.cancel()
        await asyncio.wait([call, other])


@virtual
async def test_a_node_that_is_none(world: World) -> None:
    async with watching() as (_, _, client):
        with pytest.raises(NetworkException, match="node 7 is not among the brokers"):
            await ask(client, 7)


@virtual
async def test_a_node_that_refuses_the_client_fails_no_task_that_waits_for_another(world: World) -> None:
    async with ScriptedCluster(2) as cluster:
        for broker in cluster.brokers:
            authenticates_clients(broker)
        watched = Watched(cluster.bootstrap_servers.split(",")[0], **AS_ALICE)
        await watched.metadata()
        gate = asyncio.Event()
        cluster.brokers[0].script(ApiKey.API_VERSIONS, after(gate))
        authenticates_clients(cluster.brokers[1], accepts=False)
        healthy = asyncio.ensure_future(ask(watched.client, 0))
        with pytest.raises(SaslAuthenticationException):
            await ask(watched.client, 1)
        gate.set()
        assert (await healthy).cluster_id == cluster.cluster_id
        await watched.stop()


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
async def test_hosts_and_words_of_a_broker_command_no_terminal(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def rename(response: MetadataResponse) -> None:
        response.brokers[0].host = "evil\nERROR \x1b[2J"

    async with ScriptedCluster() as cluster:
        cluster.broker.always(ApiKey.METADATA, edited(rename))
        watched = Watched(cluster.bootstrap_servers)
        await watched.metadata()
        watched.client.links[0].want()
        await asyncio.sleep(1)
        assert r"evil\nERROR \x1b[2J" in watched.client.unreachable()
        await watched.stop()
    assert caplog.messages
    assert all(message.isprintable() for message in caplog.messages)


@virtual
async def test_since_when_nobody_can_be_reached(world: World) -> None:
    async with watching(nodes=2) as (cluster, _, client):
        assert math.isnan(client.unreachable_since)
        now = asyncio.get_running_loop().time
        gone = next(link for link in client.links.values() if link.node_id < 0 and "30001" in str(link))
        await cluster.stop_node(0)
        await asyncio.sleep(10)
        gone.want()
        await asyncio.sleep(1)
        assert gone.unreached
        assert math.isnan(client.unreachable_since)  # the other one answered
        began = now()
        await cluster.stop_node(1)
        client.request_update()
        await asyncio.sleep(10)
        assert began <= client.unreachable_since < began + 1
        await cluster.start_node(0)
        await asyncio.sleep(3)
        assert math.isnan(client.unreachable_since)  # nobody had to ask


@virtual
async def test_a_connection_that_nobody_needs_is_nothing_to_care_about(world: World) -> None:
    async with watching(**{"connections.max.idle.ms": 1000}) as (cluster, _, client):
        await asyncio.sleep(10)
        assert not client.reachable()
        assert math.isnan(client.unreachable_since)
        await cluster.stop_node(0)
        await asyncio.sleep(10)
        assert math.isnan(client.unreachable_since)  # nothing was tried
        client.request_update()
        await asyncio.sleep(1)
        assert client.unreachable_since > 0


@virtual
async def test_failed_metadata_is_requested_again_and_the_cause_kept(world: World) -> None:
    async with watching() as (cluster, watched, client):
        cluster.broker.script(ApiKey.METADATA, drop(), error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        client.request_update()
        await cluster.broker.received(ApiKey.METADATA, 2)
        await asyncio.sleep(0.05)
        assert "METADATA" in str(client.metadata_error)
        await watched.metadata()
        assert client.metadata_error is None


def _refused(response: Any) -> None:
    response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@virtual
async def test_a_cluster_that_refuses_metadata_says_so(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.broker.always(ApiKey.METADATA, edited(_refused))
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


@interpreted_only
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
        cluster._state.nodes.stopped(0)  # as a broker that shuts down in its own time
        client.request_update()
        while client.links.get(0) is not None:
            await watched.metadata()
        with pytest.raises(NetworkException, match="node 0"):
            await waiting
        gate.set()
        assert (await call).error_code == ErrorCode.NONE
        await asyncio.sleep(1)
        assert not [r for r in caplog.records if "node 0" in r.getMessage()]


@virtual
async def test_a_broker_is_measured_until_it_has_gone(world: World) -> None:
    async with watching(2) as (cluster, watched, client):
        await ask(client, 0)
        await ask(client, 1)
        found = watched.measured()
        assert found.node(0)["request-total"] == found.node(0)["response-total"] == 2  # ApiVersions, and the question
        assert found["connection-count"] == found["connection-creation-total"] - found["connection-close-total"]
        cluster._state.nodes.stopped(0)
        client.request_update()
        while client.links.get(0) is not None:
            await watched.metadata()
        later = watched.measured()
        assert len(later.node(0)) == 0
        assert later.node(1)["request-total"] >= 2
        assert later["request-total"] > found["request-total"]
        await asyncio.sleep(1)
        assert watched.measured()["connection-close-total"] > found["connection-close-total"]


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
        cluster._state.nodes.stopped(0)
        client.request_update()
        while client.links.get(0) is not None:
            await watched.metadata()
        await watched.stop()
        with pytest.raises(NetworkException):
            await call


async def _none_soon(cluster: ScriptedCluster) -> bool:
    await asyncio.sleep(1)
    return not any(broker.connections for broker in cluster.brokers)


@virtual
async def test_without_known_brokers_the_bootstrap_servers_are_used(world: World) -> None:
    async with ScriptedCluster() as cluster:
        door = cluster.another_broker()
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
        await door.abort()


async def found_again(nodes: int, dead: int) -> None:
    """All known brokers have moved, and one of the two bootstrap servers is gone."""
    async with ScriptedCluster(nodes) as cluster:
        doors = [cluster.another_broker() for _ in range(2)]
        ports = [await door.open("127.0.0.1", 0) for door in doors]
        servers = ",".join(f"127.0.0.1:{port}" for port in ports)
        watched = Watched(servers, **{"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 10})
        await watched.metadata()
        for node in range(nodes):
            await ask(watched.client, node)
        for door in doors:
            await door.abort()
        for node in range(nodes):
            await cluster.stop_node(node)
        before = link_to(watched.client, 0).address
        watched.client.request_update()
        await asyncio.sleep(1)
        living = cluster.another_broker()
        for node in range(nodes):
            await cluster.start_node(node, port=0)
        await living.open("127.0.0.1", ports[1 - dead])
        async with asyncio.timeout(10):
            while link_to(watched.client, 0).address == before:
                await watched.metadata()
        await watched.stop()
        await living.abort()


@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("dead", [0, 1])
def test_every_bootstrap_server_is_tried_beside_known_brokers_that_are_gone(nodes: int, dead: int) -> None:
    """Connecting takes longer than the back-off, so there is always a known broker to try."""
    network = Network(Random(0), Conditions(latency=0.03), NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network)) as runner:
        runner.run(found_again(nodes, dead))


@asynccontextmanager
async def two_clusters(**config: Any) -> AsyncIterator[tuple[ScriptedCluster, ScriptedCluster, Watched]]:
    """A client that knows the first cluster, and whose bootstrap server is by now one of the second."""
    async with ScriptedCluster() as old, ScriptedCluster() as new:
        door = old.another_broker()
        port = await door.open("127.0.0.1", 0)
        watched = Watched(f"127.0.0.1:{port}", **config)
        await watched.metadata()
        await ask(watched.client, 0)
        await door.abort()
        await new.start_node(0, port=port)
        try:
            yield old, new, watched
        finally:
            await watched.stop()


@virtual
async def test_known_brokers_that_give_no_metadata_are_given_up(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """They answer everything else, so only a time-out shows that they are of no use (KIP-1102)."""
    config = {"metadata.max.age.ms": 10_000, "metadata.recovery.rebootstrap.trigger.ms": 90_000}
    async with two_clusters(**config) as (old, new, watched):
        loop = asyncio.get_running_loop()
        old.broker.always(ApiKey.METADATA, edited(_refused))
        began = loop.time()
        await watched.metadata()
        assert 99 <= loop.time() - began <= 103
        assert watched.client.metadata.cluster.cluster_id == new.cluster_id
        assert (await ask(watched.client, 0)).cluster_id == new.cluster_id
        assert caplog.text.count("starting again from bootstrap.servers") == 1
        assert "no metadata for metadata.recovery.rebootstrap.trigger.ms=90000" in caplog.text


@virtual
async def test_a_broker_may_ask_for_a_new_start(world: World) -> None:
    async with two_clusters() as (old, new, watched):
        gate = asyncio.Event()

        async def late(exchange: Exchange) -> None:
            await gate.wait()
            await edited(_rebootstrap_required)(exchange)

        old.broker.script(ApiKey.METADATA, late)
        watched.client.request_update()
        await old.broker.received(ApiKey.METADATA)
        call = asyncio.ensure_future(watched.client.request(INIT, InitProducerIdResponse, node_id=0))
        await asyncio.sleep(1)
        gate.set()
        await watched.metadata()
        assert watched.client.metadata.cluster.cluster_id == new.cluster_id
        assert (await call).error_code == ErrorCode.NONE, "what was under way is answered where it was sent"


def _rebootstrap_required(response: Any) -> None:
    response.error_code = ErrorCode.REBOOTSTRAP_REQUIRED


@virtual
async def test_a_cluster_that_keeps_requiring_a_rebootstrap_is_logged_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with two_clusters() as (old, new, watched):
        for broker in (old.broker, new.broker):
            broker.always(ApiKey.METADATA, edited(_rebootstrap_required))
        watched.client.request_update()
        await asyncio.sleep(100)
        assert 50 < new.broker.count(ApiKey.METADATA) < 150
        assert caplog.text.count("starting again") == 1


@virtual
async def test_without_recovery_bootstrap_servers_are_used_only_at_the_start(world: World) -> None:
    config = {"metadata.recovery.strategy": "None", "metadata.recovery.rebootstrap.trigger.ms": 1000}
    async with two_clusters(**config) as (old, new, watched):
        old.broker.always(ApiKey.METADATA, edited(_rebootstrap_required))
        watched.client.request_update()
        await asyncio.sleep(10)
        await old.stop_node(0)
        await asyncio.sleep(1000)
        assert not new.broker.requests
        await old.start_node(0)
        old.broker.always(ApiKey.METADATA, None)
        await watched.metadata()
        assert watched.client.metadata.cluster.cluster_id == old.cluster_id


@virtual
async def test_bootstrap_servers_by_their_canonical_names(world: World) -> None:
    loop = asyncio.get_running_loop()
    names = {"127.0.0.1": "b1.example", "10.0.0.2": "b2.example"}

    async def getnameinfo(sockaddr: tuple[str, int], flags: int) -> tuple[str, str]:
        return names[sockaddr[0]], str(sockaddr[1])

    loop.getaddrinfo = resolver(  # type: ignore[method-assign]
        **{"kafka_example": list(names), "127_0_0_1": ["127.0.0.1"], "b1_example": ["127.0.0.1"], "b2_example": []}
    )
    loop.getnameinfo = getnameinfo  # type: ignore[assignment,method-assign]
    async with ScriptedCluster() as cluster:
        port = cluster.bootstrap_servers.rpartition(":")[2]
        config = {"client.dns.lookup": "resolve_canonical_bootstrap_servers_only"}
        watched = Watched(f"kafka.example:{port}", **config)
        await watched.metadata()
        bootstrap = [link_to(watched.client, number).address for number in (-1, -2)]
        assert [str(address) for address in bootstrap] == [f"b1.example:{port}", f"b2.example:{port}"]
        assert (await ask(watched.client, 0)).cluster_id == cluster.cluster_id
        await watched.stop()


@virtual
async def test_a_lost_broker_makes_metadata_due_and_a_resting_one_does_not(world: World) -> None:
    config = {"metadata.max.age.ms": 10**9, "connections.max.idle.ms": 50_000}
    async with watching(**config) as (cluster, _, client):
        await ask(client, 0)
        before = cluster.broker.count(ApiKey.METADATA)
        await asyncio.sleep(1000)
        assert not cluster.broker.connections
        assert cluster.broker.count(ApiKey.METADATA) == before
        await ask(client, 0)
        cluster.broker.script(ApiKey.INIT_PRODUCER_ID, drop())
        with pytest.raises(NetworkException):
            await client.request(INIT, InitProducerIdResponse)
        await asyncio.sleep(10)
        assert cluster.broker.count(ApiKey.METADATA) == before + 2


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
