"""Every broker is down: refusing connections, or silent behind open ones. In virtual time, with Kafka's default times.

``python -m benchmarks outage`` shows the same with real Kafka, and what it costs.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from typing import Any

import pytest

from aioproducer import Delivery, HealthThresholds, KafkaProducer, Severity, wait_all
from aioproducer.errors import Outcome, TimeoutException
from aioproducer.integrations.service_health import liveness, readiness
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.timing import time_slice
from tests.support.compiled import COMPILED
from tests.support.producing import all_memory_free
from tests.support.scripted_broker import ScriptedCluster, never
from tests.support.virtual_time import World, virtual

PARTITIONS = 6
LONGEST_BACKOFF = 1.0
"""reconnect.backoff.max.ms and retry.backoff.max.ms by default, jitter included."""


class Outage:
    """The only broker is down for so many seconds."""

    def __init__(self, cluster: ScriptedCluster, world: World) -> None:
        self._cluster = cluster
        self._world = world

    async def refused(self, seconds: float) -> None:
        await self._cluster.stop_node(0)
        await asyncio.sleep(seconds)
        await self._cluster.start_node(0)

    async def silent(self, seconds: float) -> None:
        self._world.hung_until = asyncio.get_running_loop().time() + seconds
        await asyncio.sleep(seconds)


class Load:
    """Ten keyed records a second, numbered."""

    def __init__(self, producer: KafkaProducer) -> None:
        self.values: list[bytes] = []
        self.deliveries: list[Delivery] = []
        self._producer = producer

    async def flow(self) -> None:
        while True:
            number = len(self.values)
            self.values.append(b"%d" % number)
            self.deliveries.append(self._producer.send("t", self.values[-1], key=b"key %d" % (number % 20)))
            await asyncio.sleep(0.1)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("aioproducer.")]


def assert_once_and_in_order(cluster: ScriptedCluster, load: Load) -> None:
    found = {partition: cluster.values("t", partition) for partition in range(PARTITIONS)}
    assert sorted(int(value or b"") for values in found.values() for value in values) == list(range(len(load.values)))
    for values in found.values():
        assert values == sorted(values, key=lambda value: int(value or b""))
    for value, delivery in zip(load.values, load.deliveries, strict=True):
        metadata = delivery.result()
        assert found[metadata.partition][metadata.offset] == value


@pytest.mark.parametrize("way", ["refused", "silent"])
@pytest.mark.parametrize("seconds", [3, 60, 100])
@virtual
async def test_an_outage_is_a_few_lines_and_is_over_within_two_back_offs(
    world: World, way: str, seconds: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    loop = asyncio.get_running_loop()
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", PARTITIONS)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            load = Load(producer)
            flow = asyncio.create_task(load.flow())
            await asyncio.sleep(2)
            attempts = world.attempts
            await getattr(Outage(cluster, world), way)(seconds)
            returned = loop.time()
            # At most one attempt a back-off, jitter included, for the broker and for the bootstrap server.
            assert world.attempts - attempts <= 2 * seconds / (LONGEST_BACKOFF * 0.8) + 8
            oldest = next((delivery for delivery in load.deliveries if not delivery.done()), load.deliveries[-1])
            await wait_all([oldest])
            assert loop.time() - returned < 2 * LONGEST_BACKOFF
            await asyncio.sleep(2)
            flow.cancel()
            await producer.flush()
            assert all_memory_free(producer)
        assert_once_and_in_order(cluster, load)
    assert len(lines(caplog)) <= 4, lines(caplog)


@pytest.mark.parametrize("way", ["refused", "silent"])
@virtual
async def test_down_for_good_every_delivery_ends_in_time_and_the_log_stays_short(
    world: World, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    loop = asyncio.get_running_loop()
    late: list[float] = []

    def ended(began: float, delivery: Delivery) -> None:
        late.append(loop.time() - began)

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1000)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await wait_all([producer.send("t", b"before", partition=partition) for partition in range(1000)])
            down = asyncio.create_task(getattr(Outage(cluster, world), way)(1000))
            await asyncio.sleep(0.1)
            for number in range(2000):
                began = loop.time()
                delivery = producer.send("t", b"%d" % number, partition=number % 1000)
                delivery.add_done_callback(functools.partial(ended, began))
                await asyncio.sleep(0.01)
            unheard = [producer.send("t", b"unheard", partition=partition) for partition in range(1000)]
            await wait_all(unheard)
            assert all(isinstance(delivery.exception(), TimeoutException) for delivery in unheard)
            assert len(late) == 2000
            # A record joins a batch that was begun before it, and shares its time.
            assert max(late) == pytest.approx(120, abs=0.1)
            left = [producer.send("t", b"left", partition=partition) for partition in range(100)]
            closing = loop.time()
            await producer.close(timeout=5)
            assert loop.time() - closing < 5.1
            assert all(delivery.done() for delivery in left)
        down.cancel()
        world.hung_until = 0.0
    # Besides the connections: what failed is told every ten seconds at most, 1,000 partitions or one.
    assert len([line for line in lines(caplog) if "cannot be reached" in line]) <= 3
    told = [line for line in lines(caplog) if "were not delivered" in line]
    assert 1 <= len(told) <= 10, told
    assert len(lines(caplog)) <= 14, lines(caplog)


@virtual
async def test_closing_in_an_outage_tells_what_is_proven(world: World) -> None:
    loop = asyncio.get_running_loop()
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0)
        await producer.start()
        _ = await producer.send("t", b"before")
        world.hung_until = loop.time() + 1000
        under_way = producer.send("t", b"under way")
        await asyncio.sleep(40)  # its request has timed out
        behind = producer.send("t", b"behind")
        await asyncio.sleep(1)
        closing = loop.time()
        await producer.close(timeout=3)
        assert loop.time() - closing == pytest.approx(3, abs=0.1)
        assert under_way.outcome is Outcome.UNKNOWN
        assert behind.outcome is Outcome.NOT_SENT
        world.hung_until = 0.0


@virtual
async def test_a_broker_that_hangs_is_a_finding_before_its_requests_time_out(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"before")
            assert math.isnan(producer.metrics()["unanswered-age"])
            cluster.broker.script(ApiKey.PRODUCE, never())
            hanging = producer.send("t", b"hangs")
            await asyncio.sleep(14)
            assert producer.health() == []
            await asyncio.sleep(2)
            (finding,) = producer.health()
            assert (finding.metric, finding.severity) == ("unanswered-age", Severity.WARNING)
            assert 15 < finding.value < 16.1
            assert readiness([producer]).status == 200  # other brokers may answer
            _ = await hanging
            await asyncio.sleep(1)  # the metadata that the lost connection asked for may still be under way
            assert math.isnan(producer.metrics()["unanswered-age"])


@pytest.mark.parametrize(("missed", "pending"), [(False, False), (True, False), (True, True)])
@virtual
async def test_a_service_is_not_ready_from_the_first_failed_attempt_until_a_broker_is_back(
    world: World, *, missed: bool, pending: bool
) -> None:
    """``missed``: a call needs the connection; otherwise the service is idle."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"1")
            asking = [asyncio.create_task(producer.partitions_for("unknown"))] if missed else []
            await asyncio.sleep(0 if missed else 10)
            await cluster.stop_node(0)
            if pending:
                _ = producer.send("t", b"2")
            await asyncio.sleep(1)
            (finding,) = producer.health()
            assert (finding.metric, finding.severity) == ("unreachable-age", Severity.WARNING)
            assert readiness([producer]).status == 503
            assert readiness([producer]).body["why_not"] == ["unreachable-age"]
            assert liveness([producer]).status == 200
            assert readiness([producer], HealthThresholds(unreachable_seconds=10)).status == 200
            await asyncio.sleep(60)
            assert producer.health()[0].value > 60
            await cluster.start_node(0)
            await asyncio.sleep(2 * LONGEST_BACKOFF)
            assert producer.health() == []
            assert readiness([producer]).status == 200
            _ = await asyncio.gather(*asking, return_exceptions=True)


@pytest.mark.skipif(COMPILED, reason="compiled code has the length of a turn in it")
@virtual
async def test_batches_that_expire_turn_by_turn_are_not_sent_while_others_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slice, "TIME_SLICE", 0.0)  # one batch at a time
    many = 50
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    async with ScriptedCluster() as cluster:
        cluster.create_topic("late", many)
        cluster.create_topic("intime", 1)
        config: dict[str, Any] = {"delivery_timeout_ms": 5000, "request_timeout_ms": 4000, "linger_ms": 0}
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            _ = await producer.partitions_for("late")
            _ = await producer.send("intime", b"first")
            late = [producer.send("late", b"late", partition=partition) for partition in range(many)]
            ends: list[Delivery] = []
            for delivery in late:
                delivery.add_done_callback(ends.append)
            loop.hold(6)
            in_time = producer.send("intime", b"in time")
            in_time.add_done_callback(ends.append)
            await producer.flush()
            ends.remove(in_time)
            assert ends == late
            assert in_time.exception() is None
            assert {one.outcome for one in late} == {Outcome.NOT_SENT}
            assert not any(cluster.values("late", partition) for partition in range(many))
            assert all_memory_free(producer)
