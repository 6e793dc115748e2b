"""A producer, and the brokers that it has to do with, all in one thread and in virtual time."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from aioproducer import KafkaProducer
from aioproducer.net.client import KafkaClient
from aioproducer.producer.producer import core_of
from aioproducer.producer.sender.sender import Sender
from aioproducer.testing.simulation.loop import SimulatedClock
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Address, Fate, Network, NetworkFaults
from aioproducer.testing.simulation.trace import Trace
from benchmarks.fleet.cluster_map import PORT, ClusterMap
from benchmarks.fleet.cpu_meter import CpuMeter
from benchmarks.fleet.fleet_broker import FleetBroker, Traffic
from benchmarks.fleet.load import Load
from benchmarks.fleet.metered_loop import MeteredLoop

LATENCY: Final = 0.00025
"""Seconds one way, from half to one and a half of it: a zone of a cloud."""
BANDWIDTH: Final = 1.25e9
"""Bytes a second of a connection: 10 Gbit/s."""
WINDOW: Final = 1 << 30
"""Bytes under way: more than any answer has."""
NEVER: Final = 1e12

BOOTSTRAP: Final = 3
"""Brokers in bootstrap.servers."""

CONFIGS: Final = {"buffer_memory": 1 << 29, "request_timeout_ms": 10_000, "delivery_timeout_ms": 30_000}
"""Shorter time-outs than the defaults, so that outages end sooner, and memory for all that waits meanwhile."""


class Unplugged(NetworkFaults):
    """Hosts that have lost their line: nothing arrives there any more, and nothing from there."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()

    def connecting(self, host: str) -> Fate:
        return Fate.LOST if host in self.hosts else Fate.ARRIVE

    def unreachable_until(self, server: Address) -> float:
        return NEVER if server[0] in self.hosts else 0.0


class NoTrace(Trace):
    """Of a run that nobody replays."""

    def __call__(self, *what: object) -> None:
        pass


class Fleet:
    """``in_use`` topics, the first of ``topics``, get records. The loop must be made, and not running yet."""

    def __init__(self, brokers: int, topics: int, in_use: int, partitions: int, *, seed: int) -> None:
        """Each topic has ``partitions`` partitions."""
        random = Random(seed)
        self.meter = CpuMeter()
        self._unplugged = Unplugged()
        conditions = Conditions(latency=LATENCY, bandwidth=BANDWIDTH, window=WINDOW, splits=0.0)
        self.network = Network(random, conditions, self._unplugged, NoTrace())
        self.loop = MeteredLoop(random, self.network, self.meter)
        self.traffic = Traffic()
        names = [f"topic-{number:04}" for number in range(topics)]
        self.cluster = ClusterMap(brokers, names, partitions)
        self._brokers = [FleetBroker(number, self.cluster, self.network, self.traffic) for number in range(brokers)]
        servers = ",".join(f"{self.cluster.host(number)}:{PORT}" for number in range(BOOTSTRAP))
        self.producer: KafkaProducer = KafkaProducer(bootstrap_servers=servers, **CONFIGS)  # type: ignore[arg-type]
        self.producer._clock = SimulatedClock(self.loop, lambda: 0.0)
        self.producer._random = Random(seed)
        self.load = Load(self.loop, self.producer, names[:in_use], partitions, random)

    @property
    def client(self) -> KafkaClient:
        """Of the producer, which must be started."""
        sender = core_of(self.producer).sender
        assert isinstance(sender, Sender)
        return sender.parts.client

    def stop(self, brokers: Iterable[int]) -> None:
        """They close their connections, as on SIGTERM."""
        for number in brokers:
            self._brokers[number].stop()

    def start(self, brokers: Iterable[int]) -> None:
        for number in brokers:
            self._brokers[number].start()

    def kill(self, broker: int) -> None:
        """Its host is gone: nothing answers, and nothing is refused."""
        self._unplugged.hosts.add(self.cluster.host(broker))
