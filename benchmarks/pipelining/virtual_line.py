"""A line in virtual time: what is measured over it is the producer's rules alone, and the same on every machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.simulation.listening import listen_on_network
from aioproducer.testing.simulation.loop import SimulatedClock, SimulatedLoop
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Network, NetworkFaults
from aioproducer.testing.simulation.trace import Trace
from benchmarks.pipelining.far_broker import TOPIC

T = TypeVar("T")

BANDWIDTH = 1e9
"""Bytes a second: that it takes time to send is of no account here."""
STEPS = 100_000_000
"""Of the loop, beyond which a run is taken for one that will not end."""


class Steady(Random):
    """For a network on which everything takes its time exactly."""

    def random(self) -> float:
        return 0.5


def over_virtual_line(
    round_trip_ms: float, *, window: int, partitions: int, run: Callable[[str], Coroutine[Any, Any, T]]
) -> T:
    """What ``run`` answers, given the bootstrap servers of an embedded broker that far away, with ``TOPIC`` in it."""

    async def with_broker() -> T:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        clock = SimulatedClock(loop, lambda: 0.0)  # else a busy machine would give the broker's long work more turns
        async with EmbeddedCluster(listen=listen_on_network, clock=clock) as cluster:
            cluster.create_topic(TOPIC, partitions, configs={"producer.state.batches.to.retain": max(window, 5)})
            return await run(cluster.bootstrap_servers)

    random = Steady()
    conditions = Conditions(latency=round_trip_ms / 2000, bandwidth=BANDWIDTH, splits=0.0)
    network = Network(random, conditions, NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(random, network, max_steps=STEPS)) as runner:
        return runner.run(with_broker())
