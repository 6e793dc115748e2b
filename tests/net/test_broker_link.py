from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random
from socket import SO_RCVBUF, SO_SNDBUF
from typing import Any

import pytest

from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import NetworkException, TimeoutException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics.network_metrics import NetworkMetrics
from aioproducer.metrics.registry import MetricRegistry
from aioproducer.net import in_slices
from aioproducer.net.addresses import Address, parse_addresses
from aioproducer.net.broker_link import BrokerLink, LinkState
from aioproducer.net.connection.in_flight_request import MessageRequest
from aioproducer.net.link_task import LinkTask, close
from aioproducer.net.security.security import ClientSecurity
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.codec import ELEMENTS
from aioproducer.protocol.framing import encode_response
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from aioproducer.tasks.supervisor import Supervisor
from tests.net.slices import Slices
from tests.support.scripted_broker import (
    Exchange,
    ScriptedCluster,
    after,
    answer,
    drop,
    edited,
    error,
    never,
    raw,
    with_appendix,
)
from tests.support.security.scripted_sasl import AS_ALICE, authenticates_clients
from tests.support.virtual_time import World, virtual

from .test_host_addresses import resolver

IDLE, CONNECTING, READY, BACKOFF, CLOSED = LinkState


class Watched:
    """A link and its task, and every state that it reported."""

    def __init__(self, address: Address, node_id: int = 0, **config: Any) -> None:
        self.states: list[LinkState] = []
        self.crashes: list[BaseException] = []
        self.changed = asyncio.Event()
        self.supervisor = Supervisor(self.crashes.append)
        configs = producer_config({"bootstrap.servers": str(address), **config})
        most = configs.max_in_flight_requests_per_connection
        self.link = BrokerLink(node_id, address, most, on_change=self._changed)
        self.connecting = LinkTask(
            self.link,
            configs,
            Random(1),
            security=ClientSecurity(configs, Random(1), self.supervisor.launch),
            on_crash=self.crashes.append,
            metrics=NetworkMetrics(MetricRegistry()),
            spare_buffers=[],
        )
        self.task = self.supervisor.spawn(self.connecting.run(), "link")

    def _changed(self, link: BrokerLink) -> None:
        self.states.append(link.state)
        self.changed.set()

    async def until(self, condition: Callable[[BrokerLink], bool]) -> BrokerLink:
        while not condition(self.link):
            self.changed.clear()
            await self.changed.wait()
        return self.link

    async def ready(self) -> BrokerLink:
        await self.until(lambda link: link.state is IDLE)
        self.link.want()
        return await self.until(BrokerLink.ready)

    async def stop(self) -> None:
        await self.supervisor.stop()
        await close(self.link, 0)
        assert not self.crashes


@asynccontextmanager
async def linked(**config: Any) -> AsyncIterator[tuple[ScriptedCluster, Watched]]:
    async with ScriptedCluster() as cluster:
        watched = Watched(parse_addresses([cluster.bootstrap_servers])[0], **config)
        try:
            yield cluster, watched
        finally:
            await watched.stop()


async def ask(link: BrokerLink) -> MetadataResponse:
    return await link.call(MetadataRequest(topics=[]), MetadataResponse)


@virtual
async def test_it_connects_when_wanted_and_not_before(world: World) -> None:
    async with linked() as (cluster, watched):
        await asyncio.sleep(100)
        assert (watched.states, world.attempts) == ([IDLE], 0)
        link = await watched.ready()
        assert watched.states == [IDLE, CONNECTING, READY]
        assert (await ask(link)).cluster_id == cluster.cluster_id
        link.want()
        assert world.attempts == 1


@virtual
async def test_without_a_connection_nothing_is_sent(world: World) -> None:
    async with linked() as (_, watched):
        with pytest.raises(NetworkException, match="not connected"):
            await ask(watched.link)
        with pytest.raises(NetworkException, match="not connected"):
            watched.link.send(MessageRequest(MetadataRequest(), 1, lambda response, error: None))
        with pytest.raises(NetworkException, match="not connected"):
            await in_slices.call_in_slices(watched.link, MetadataRequest(topics=[]), MetadataResponse)
        assert not watched.link.can_send(0)


@virtual
async def test_a_large_request_is_written_with_turns_of_the_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_slices, "TimeSlice", lambda loop: Slices(always_over=True))
    async with linked() as (_, watched):
        link = await watched.ready()
        names = [f"t{number}" for number in range(20 * ELEMENTS)]
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        asked = asyncio.create_task(in_slices.call_in_slices(link, request, MetadataResponse))
        for _ in range(10):
            await asyncio.sleep(0)
            assert link.in_flight() == 0
        answer = await asked
        assert {topic.name for topic in answer.topics} == set(names)


@virtual
async def test_a_connection_lost_while_a_large_request_is_written_ends_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_slices, "TimeSlice", lambda loop: Slices(always_over=True))
    async with linked() as (_, watched):
        link = await watched.ready()
        request = MetadataRequest(topics=[MetadataRequestTopic(name=f"t{number}") for number in range(20 * ELEMENTS)])
        asked = asyncio.create_task(in_slices.call_in_slices(link, request, MetadataResponse))
        await asyncio.sleep(0)
        link.disconnect(NetworkException("it is over"))
        with pytest.raises(NetworkException, match="it is over"):
            await asked


@virtual
async def test_an_unreachable_broker_is_logged_once_and_tried_with_back_off(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with linked() as (cluster, watched):
        await cluster.stop_node(0)
        loop = asyncio.get_running_loop()
        tried: list[float] = []
        while len(tried) < 12:
            await watched.until(lambda link: link.state is IDLE)
            tried.append(loop.time())
            watched.link.want()
            await watched.until(lambda link: link.state is BACKOFF)
            assert "Connection refused" in str(watched.link.last_error)
        waits = [later - earlier for earlier, later in pairwise(tried)]
        assert waits[0] < 0.1
        assert all(0.8 <= wait <= 1.3 for wait in waits[5:])
        await cluster.start_node(0)
        await ask(await watched.ready())
        assert watched.link.last_error is None
        records = [record for record in caplog.records if record.name.endswith("link_task")]
        assert [vars(record)["kafka"]["event"] for record in records] == ["broker_unreachable", "broker_reached"]
        assert vars(records[0])["kafka"]["error"] == "NetworkException"
        said = [record.getMessage() for record in records]
        assert "cannot be reached" in said[0]
        assert "is reached again" in said[1]
        # The next outage is news again.
        cluster.broker.script(ApiKey.METADATA, drop())
        with pytest.raises(NetworkException):
            await ask(watched.link)
        assert len([record for record in caplog.records if "cannot be reached" in record.getMessage()]) == 2


@virtual
async def test_a_lost_connection_is_reported_before_anything_else_happens(world: World) -> None:
    async with linked() as (cluster, watched):
        link = await watched.ready()
        results: list[Any] = []
        cluster.broker.script(ApiKey.METADATA, drop())
        request = MetadataRequest(topics=[])
        link.send(
            MessageRequest(request, 9, lambda response, error: results.append((error, link.in_flight(), link.state)))
        )
        await watched.until(lambda link: link.state is not READY)
        assert [type(error) for error, _, _ in results] == [NetworkException]
        assert not link.can_send(asyncio.get_running_loop().time())
        assert watched.states[-1] is BACKOFF
        await ask(await watched.ready())


@virtual
async def test_a_broker_that_does_not_answer_has_longer_each_time(world: World) -> None:
    async with linked(**{"request.timeout.ms": 60_000}) as (cluster, watched):
        cluster.broker.always(ApiKey.API_VERSIONS, never())
        loop = asyncio.get_running_loop()
        for allowed in (10, 20, 30, 30):
            await watched.until(lambda link: link.state is IDLE)
            began = loop.time()
            watched.link.want()
            await watched.until(lambda link: link.state is BACKOFF)
            assert loop.time() - began == pytest.approx(allowed, abs=0.1)
            assert isinstance(watched.link.last_error, TimeoutException)


@virtual
async def test_the_first_attempt_after_a_lost_connection_has_no_longer_than_any_first(world: World) -> None:
    async with linked(**{"request.timeout.ms": 60_000}) as (cluster, watched):
        link = await watched.ready()
        cluster.broker.always(ApiKey.API_VERSIONS, never())
        lost = asyncio.create_task(ask(link))
        await asyncio.sleep(0)
        link.disconnect(NetworkException("the test ended it"))
        with pytest.raises(NetworkException):
            await lost
        assert link.failures == 1
        for allowed in (10, 20):
            await watched.until(lambda link: link.state is IDLE)
            began = asyncio.get_running_loop().time()
            link.want()
            await watched.until(lambda link: link.state is BACKOFF)
            assert asyncio.get_running_loop().time() - began == pytest.approx(allowed, abs=0.1)


@virtual
async def test_a_network_that_swallows_everything(world: World) -> None:
    world.silent = {"10.1.1.1"}
    watched = Watched(Address("10.1.1.1", 9092))
    await asyncio.sleep(0)
    watched.link.want()
    await watched.until(lambda link: link.state is BACKOFF)
    assert "was not ready within 10000 ms" in str(watched.link.last_error)
    await watched.stop()


@asynccontextmanager
async def named(world: World, *hosts: str, **config: Any) -> AsyncIterator[tuple[ScriptedCluster, Watched]]:
    """A link to a name with these addresses, of which 127.0.0.1 is the broker's, and 10.1.1.x swallow everything."""
    world.silent = {host for host in hosts if host.startswith("10.1.1.")}
    asyncio.get_running_loop().getaddrinfo = resolver(kafka_example=list(hosts))  # type: ignore[method-assign]
    async with ScriptedCluster() as cluster:
        port = parse_addresses([cluster.bootstrap_servers])[0].port
        watched = Watched(Address("kafka.example", port), **config)
        try:
            yield cluster, watched
        finally:
            await watched.stop()


@virtual
async def test_each_address_of_a_host_has_its_time(world: World) -> None:
    async with named(world, "10.1.1.1", "10.1.1.2", "127.0.0.1") as (cluster, watched):
        loop = asyncio.get_running_loop()
        began = loop.time()
        link = await watched.ready()
        assert loop.time() - began == pytest.approx(20, abs=0.1)  # two times socket.connection.setup.timeout.ms
        assert watched.states == [IDLE, CONNECTING, READY]
        assert (await ask(link)).cluster_id == cluster.cluster_id


@virtual
async def test_after_the_last_address_its_error_is_raised_and_the_next_attempt_tries_all_again(world: World) -> None:
    async with named(world, "10.1.1.1", "127.0.0.2") as (_, watched):
        for attempts in (2, 4):
            await watched.until(lambda link: link.state is IDLE)
            watched.link.want()
            await watched.until(lambda link: link.state is BACKOFF)
            assert world.attempts == attempts
            assert "Connection refused" in str(watched.link.last_error)


@virtual
async def test_an_address_that_was_lost_is_tried_again_after_the_others(world: World) -> None:
    async with named(world, "127.0.0.1", "10.1.1.1") as (cluster, watched):
        await ask(await watched.ready())
        cluster.broker.drop_connections()
        await watched.until(lambda link: link.state is IDLE)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await watched.ready()
        assert loop.time() - began == pytest.approx(10, abs=0.3)  # 10.1.1.1 came first


@virtual
async def test_a_broker_that_refuses_the_protocol_is_not_tried_at_its_other_addresses(world: World) -> None:
    async with named(world, "127.0.0.1", "10.1.1.1") as (cluster, watched):
        cluster.broker.always(ApiKey.API_VERSIONS, error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        await asyncio.sleep(0)
        watched.link.want()
        await watched.until(lambda link: link.state is BACKOFF)
        assert world.attempts == 1


@virtual
async def test_a_name_nobody_knows(world: World) -> None:
    async with named(world) as (_, watched):
        watched.link.address = Address("other.example", 1)
        await asyncio.sleep(0)
        watched.link.want()
        await watched.until(lambda link: link.state is BACKOFF)
        results = str(watched.link.last_error)
        assert "cannot connect to other.example:1 (node 0): Name or service not known; the cluster gave this" in results


async def test_an_address_that_is_none() -> None:
    for address, says in ((Address("a" * 70, 9092), "a" * 70), (Address("127.0.0.1", 99_999), "99999")):
        watched = Watched(Address("127.0.0.1", 1))
        watched.link.address = address
        await asyncio.sleep(0)
        watched.link.want()
        await watched.until(lambda link: link.state is BACKOFF)
        assert isinstance(watched.link.last_error, NetworkException)
        assert says in str(watched.link.last_error)
        await watched.stop()


class Options:
    """As much of a socket as is tuned."""

    def __init__(self) -> None:
        self.set: dict[int, int] = {}

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self.set[option] = value


@pytest.mark.parametrize(("send", "receive"), [(131072, 32768), (0, 1), (-1, -1)])
@virtual
async def test_buffers_of_the_socket(world: World, send: int, receive: int) -> None:
    async with linked(**{"send.buffer.bytes": send, "receive.buffer.bytes": receive}) as (_, watched):
        options = Options()
        watched.connecting._tune(options)  # type: ignore[arg-type]
        found = {option: value for option, value in options.set.items() if option in (SO_SNDBUF, SO_RCVBUF)}
        assert found == ({} if send < 0 else {SO_SNDBUF: send, SO_RCVBUF: receive}), "-1 leaves it to the system"


# ApiVersions


@virtual
async def test_an_older_broker_gets_requests_in_its_own_version(world: World) -> None:
    async def only_version_0(exchange: Exchange) -> None:
        """As a broker from before KIP-511 answers: in version 0, with the versions of this API alone."""
        response = exchange.handle()
        response.error_code = ErrorCode.UNSUPPORTED_VERSION
        response.api_keys = [api for api in response.api_keys if api.api_key == ApiKey.API_VERSIONS]
        response.api_keys[0].max_version = 0
        parts = encode_response(response, version=0, correlation_id=exchange.header.correlation_id)
        exchange.writer.writelines(parts)

    async with linked() as (cluster, watched):
        cluster.broker.script(ApiKey.API_VERSIONS, only_version_0)
        link = await watched.ready()
        found = [header.api_version for header, _ in cluster.broker.requests]
        assert found == [4, 0]
        assert link.api_versions.latest_usable_version(MetadataRequest) > 0


@virtual
async def test_a_broker_that_refuses_to_tell_its_versions(world: World) -> None:
    async with linked() as (cluster, watched):
        cluster.broker.script(ApiKey.API_VERSIONS, error(ErrorCode.INVALID_REQUEST))
        await watched.until(lambda link: link.state is IDLE)
        watched.link.want()
        await watched.until(lambda link: link.state is BACKOFF)
        assert "refused to report its API versions" in str(watched.link.last_error)
        await watched.ready()


@virtual
async def test_a_connection_lost_in_the_tick_in_which_it_became_usable(world: World) -> None:
    async with linked() as (cluster, watched):
        cluster.broker.script(ApiKey.API_VERSIONS, with_appendix(), with_appendix(b"\xff\xff\xff\xff"), answer)
        for _ in range(2):
            await watched.until(lambda link: link.state is IDLE)
            watched.link.want()
            await watched.until(lambda link: link.state is BACKOFF)
        assert READY not in watched.states
        await ask(await watched.ready())


def test_brokers_accept_the_version_of_the_client_software() -> None:
    from aioproducer.broker.handlers.api_versions import _SOFTWARE
    from aioproducer.net.link_task import SOFTWARE_VERSION

    assert _SOFTWARE.fullmatch(SOFTWARE_VERSION)


# Windows, throttling


@virtual
async def test_requests_under_way_are_bounded(world: World) -> None:
    async with linked(**{"max.in.flight.requests.per.connection": 2}) as (cluster, watched):
        gate = asyncio.Event()
        cluster.broker.always(ApiKey.METADATA, after(gate))
        link = await watched.ready()
        calls = []
        for in_flight in range(2):
            assert link.can_send(0)
            calls.append(asyncio.ensure_future(ask(link)))
            await asyncio.sleep(0)
            assert link.in_flight() == in_flight + 1
        assert not link.can_send(0)
        assert link.in_flight() == link.max_in_flight
        gate.set()
        await asyncio.gather(*calls)
        assert link.can_send(0)


def test_a_throttle_is_over_when_its_end_is_reported_on_every_clock() -> None:
    """uvloop's counts whole milliseconds. A time a rounding error beyond one was reported before it had come."""
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")
    results: dict[BrokerLink, bool] = {}

    async def throttle() -> None:
        loop = asyncio.get_running_loop()
        all_reported = loop.create_future()

        def changed(link: BrokerLink) -> None:
            results[link] = link.throttled_until <= loop.time()
            if len(results) == len(links):
                all_reported.set_result(None)

        links = [BrokerLink(number, Address("broker", 1), 5, on_change=changed) for number in range(200)]
        for number, link in enumerate(links):
            link.throttle(1 + number % 50)
        await all_reported

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(throttle())
    assert all(results.values())


@virtual
async def test_a_throttled_link_says_when_it_is_over(world: World) -> None:
    async with linked() as (_, watched):
        link = await watched.ready()
        loop = asyncio.get_running_loop()
        link.throttle(0)
        assert link.can_send(loop.time())
        link.throttle(60_000)
        link.throttle(1000)  # a shorter one does not shorten it
        results = len(watched.states)
        assert not link.can_send(loop.time())
        assert 59 < link.throttled_until - loop.time() <= 60
        await asyncio.sleep(59)
        assert len(watched.states) == results
        await asyncio.sleep(2)
        assert watched.states[results:] == [READY]
        assert link.can_send(loop.time())
        link.throttle(3_600_000)
        link.retire(NetworkException("gone"))
        link.throttle(7_200_000)
        assert link.throttled_until < loop.time() + 3_600_001, "a link that is given up waits for nothing"


@virtual
async def test_a_broker_that_does_not_read_is_sent_no_more(world: World) -> None:
    async with linked(**{"max.request.size": 1000}) as (cluster, watched):
        cluster.broker.always(ApiKey.METADATA, never())
        link = await watched.ready()
        request = MetadataRequest(topics=[])
        while link.can_send(0):
            connection = link.connection
            assert connection is not None
            connection._transport.write(bytes(100_000))  # type: ignore[union-attr]
        assert (link.ready(), link.writable()) == (True, False)
        assert request.API_KEY is ApiKey.METADATA


# Rest and end


@virtual
async def test_rest_is_no_failure(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with linked() as (cluster, watched):
        link = await watched.ready()
        link.rest()
        await watched.until(lambda link: link.state is IDLE)
        assert link.last_error is None
        assert not cluster.broker.connections
        await ask(await watched.ready())
        assert not [record for record in caplog.records if record.name.endswith("link_task")]


@virtual
async def test_a_broker_may_close_an_idle_connection_without_a_word_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with linked() as (cluster, watched):
        for _ in range(3):
            await ask(await watched.ready())
            cluster.broker.drop_connections()
            await watched.until(lambda link: link.state is IDLE)
            assert watched.link.last_error is None
        assert not caplog.records


@virtual
async def test_a_connection_closed_before_it_was_of_use_is_a_failure(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with linked() as (cluster, watched):
        for _ in range(3):
            await watched.ready()
            cluster.broker.drop_connections()
            await watched.until(lambda link: link.state is BACKOFF)
            assert watched.link.last_error is not None
        assert len(caplog.records) == 1


@virtual
async def test_a_connection_closed_after_a_request_without_response_is_a_failure(world: World) -> None:
    """That is how a broker says that it could not append what was produced with acks=0."""
    async with linked() as (cluster, watched):
        link = await watched.ready()
        await ask(link)
        link.send(MessageRequest(MetadataRequest(topics=[]), 9, lambda response, error: None), expect_response=False)
        cluster.broker.drop_connections()
        await watched.until(lambda link: link.state is BACKOFF)
        assert link.last_error is not None


@virtual
async def test_an_idle_connection_is_closed_but_not_while_an_answer_is_due(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    config = {"connections.max.idle.ms": 10_000, "request.timeout.ms": 100_000}
    async with linked(**config) as (cluster, watched):
        gate = asyncio.Event()
        cluster.broker.script(ApiKey.METADATA, after(gate))
        link = await watched.ready()
        call = asyncio.ensure_future(ask(link))
        await asyncio.sleep(50)
        assert link.ready()
        gate.set()
        await call
        await asyncio.sleep(9)
        assert link.ready()
        await asyncio.sleep(2)
        assert link.state is IDLE
        assert not caplog.records


@virtual
async def test_bytes_that_never_leave_keep_no_connection(world: World) -> None:
    """More than the sockets take in, and less than what pauses writing."""
    async with linked(**{"connections.max.idle.ms": 10_000, "send.buffer.bytes": 4096}) as (_, watched):
        link = await watched.ready()
        assert link.connection is not None
        transport: Any = link.connection._transport
        began, connection = asyncio.get_running_loop().time(), link.connection
        transport.get_write_buffer_size = lambda: 5000 if asyncio.get_running_loop().time() - began < 15 else 4000
        await asyncio.sleep(48)
        assert link.connection is connection
        await asyncio.sleep(5)
        assert link.connection is not connection, "request.timeout.ms after the last byte has left"


@virtual
async def test_an_idle_connection_is_closed_however_often_its_session_is_renewed(world: World) -> None:
    async with linked(**AS_ALICE, **{"connections.max.idle.ms": 10_000}) as (cluster, watched):
        authenticates_clients(cluster.broker, session_ms=2_000)
        link = await watched.ready()
        await ask(link)
        await asyncio.sleep(9)
        assert link.state is READY
        assert cluster.broker.count(ApiKey.SASL_AUTHENTICATE) >= 5
        await asyncio.sleep(2)
        assert link.state is IDLE


@virtual
async def test_connections_that_may_be_idle_for_ever(world: World) -> None:
    async with linked(**{"connections.max.idle.ms": -1}) as (cluster, watched):
        link = await watched.ready()
        await asyncio.sleep(100_000)
        assert link.ready()
        cluster.broker.drop_connections()
        await watched.until(lambda link: link.state is IDLE)


@virtual
async def test_a_retired_link_is_answered_and_ends(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async with linked() as (cluster, watched):
        gate = asyncio.Event()
        cluster.broker.script(ApiKey.METADATA, after(gate))
        link = await watched.ready()
        call = asyncio.ensure_future(ask(link))
        await cluster.broker.received(ApiKey.METADATA)
        watched.supervisor.cancel(watched.task)
        link.throttle(10_000)
        link.retire(NetworkException("it has moved"))
        assert link.state is CLOSED
        assert not link.can_send(0)
        with pytest.raises(NetworkException, match="it has moved"):
            await ask(link)
        gate.set()
        assert (await call).cluster_id == cluster.cluster_id
        await cluster.broker.until(lambda broker: not broker.connections)
        assert not caplog.records


@virtual
async def test_a_retired_link_that_is_not_answered_ends_in_time(world: World) -> None:
    async with linked() as (cluster, watched):
        cluster.broker.script(ApiKey.METADATA, never())
        link = await watched.ready()
        call = asyncio.ensure_future(ask(link))
        await asyncio.sleep(0)
        link.retire(NetworkException("it has moved"))
        with pytest.raises(NetworkException, match=r"request\.timeout\.ms"):
            await call


@virtual
async def test_abort_ends_what_is_under_way(world: World) -> None:
    async with linked() as (cluster, watched):
        cluster.broker.script(ApiKey.METADATA, never())
        link = await watched.ready()
        call = asyncio.ensure_future(ask(link))
        await asyncio.sleep(0)
        watched.supervisor.cancel(watched.task)
        link.abort(NetworkException("no more"))
        with pytest.raises(NetworkException, match="no more"):
            await call
        assert link.state is CLOSED


@virtual
async def test_a_task_cancelled_at_any_tick_of_connecting_leaves_no_connection(world: World) -> None:
    async with ScriptedCluster() as cluster:
        for ticks in range(25):
            watched = Watched(parse_addresses([cluster.bootstrap_servers])[0])
            await asyncio.sleep(0)
            watched.link.want()
            for _ in range(ticks):
                await asyncio.sleep(0.0005)
            await watched.stop()
        await asyncio.sleep(1)
        assert not cluster.broker.connections


@virtual
async def test_garbage_ends_a_connection_and_the_next_is_a_fresh_start(world: World) -> None:
    async with linked() as (cluster, watched):
        cluster.broker.script(ApiKey.METADATA, raw(b"HTTP/1.1 400 Bad Request"), edited(lambda response: None))
        link = await watched.ready()
        with pytest.raises(NetworkException, match="HTTP"):
            await ask(link)
        await ask(await watched.ready())
