"""One size of fleet, through all events, in a process of its own."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks.fleet.cpu_meter import COLLECTOR, PRODUCER
from benchmarks.fleet.events import EVENTS, Event
from benchmarks.fleet.load import Sample, quantile
from benchmarks.fleet.simulated_fleet import Fleet
from benchmarks.harness.command import quiet
from benchmarks.harness.usage import resident

START: Final = "start"
"""The event before all others: the first metadata, all connections, and a record to each partition."""
A_TICK: Final = 1000
"""Records that are sent at once then: 100,000 a second."""
SEED: Final = 1


@dataclass(frozen=True)
class Size:
    """``cluster`` is the number of partitions in the cluster, ``partitions`` of those in use, and ``topic`` of each
    topic; ``rate`` is in records a second."""

    brokers: int
    partitions: int
    cluster: int
    topic: int
    rate: int


@dataclass(frozen=True)
class Happening:
    """One event. CPU is the producer's, in seconds; delays, from when a record was due until it was acknowledged, and
    times of the loop are in milliseconds."""

    event: str
    seconds: float
    """Of virtual time."""
    records: int
    failed: int
    cpu: float
    collector: float
    """Seconds of the garbage collector, which scans the model's objects, too."""
    longest_collection: float
    turn_p99_9: float
    """CPU of the producer in a turn of the loop."""
    turn_max: float
    longest: str
    """The longest callbacks, in words."""
    p50: float
    p99: float
    most: float
    requests: dict[str, int]
    batches: int
    metadata_mb: float
    connections: int
    """Made."""
    rss: float
    """MiB beyond those of the process before the producer was made."""


@dataclass(frozen=True)
class Point:
    """All events of a size; ``model`` is the MiB of the process before the producer was made."""

    size: Size
    model: float
    minutes: float
    happenings: list[Happening]

    def of(self, event: str) -> Happening:
        return next(one for one in self.happenings if one.event == event)


def run(size: Size, events: tuple[Event, ...] = EVENTS) -> Point:
    """In this process, which is to do nothing else."""
    topics, in_use = size.cluster // size.topic, size.partitions // size.topic
    fleet = Fleet(size.brokers, topics, in_use, size.topic, seed=SEED)
    gc.collect()
    before = resident("VmRSS")
    with quiet(), fleet.loop.metered(), asyncio.Runner(loop_factory=lambda: fleet.loop) as runner:
        happenings = runner.run(_all(fleet, size, events, before))
    return Point(size, before, 0.0, happenings)


async def _all(fleet: Fleet, size: Size, events: tuple[Event, ...], before: float) -> list[Happening]:
    me = asyncio.current_task()
    assert me is not None
    fleet.loop.applications.add(me)
    await asyncio.sleep(0)  # from here on this task is no part of the producer
    watch = Watch(fleet, before)
    await asyncio.create_task(fleet.producer.start(), name="start")
    try:
        await asyncio.gather(*(fleet.producer.partitions_for(topic) for topic in fleet.load.topics))
        await fleet.load.everywhere(A_TICK)
        happenings = [await watch.ended(START)]
        fleet.load.start(size.rate)
        for event in events:
            await event.run(fleet)
            await asyncio.sleep(event.seconds)
            happenings.append(await watch.ended(event.name))
        await fleet.load.stop()
    finally:
        await fleet.producer.close(0)
    return happenings


class Watch:
    """Reads the meters before and after each event."""

    def __init__(self, fleet: Fleet, before: float) -> None:
        self._fleet = fleet
        self._before = before
        self._begin()

    def _begin(self) -> None:
        fleet = self._fleet
        loop, traffic = fleet.loop, fleet.traffic
        loop.meter.longest_collection = 0.0
        del loop.turns[:]
        loop.long.clear()
        self._began = loop.now
        self._seconds = list(loop.meter.seconds)
        self._requests = traffic.requests.copy()
        self._others = traffic.batches, traffic.metadata_bytes, traffic.connections
        fleet.load.sample = Sample()

    async def ended(self, event: str) -> Happening:
        """What has happened since the last one ended. The records of this one may end later: they are waited for, in
        the time of the next."""
        fleet = self._fleet
        loop, traffic, sample = fleet.loop, fleet.traffic, fleet.load.sample
        meter = loop.meter
        cpu, collector = (meter.seconds[owner] - self._seconds[owner] for owner in (PRODUCER, COLLECTOR))
        batches, metadata, connections = (
            now - then
            for now, then in zip(
                (traffic.batches, traffic.metadata_bytes, traffic.connections), self._others, strict=True
            )
        )
        seconds = loop.now - self._began
        longest = sorted(loop.long, reverse=True)[:3]
        turns, requests = loop.turns[:], traffic.requests - self._requests
        longest_collection = meter.longest_collection
        rss = resident("VmRSS") - self._before
        self._begin()
        await sample.ended()
        return Happening(
            event,
            seconds,
            sample.sent,
            sample.failed,
            cpu,
            collector,
            longest_collection * 1e3,
            quantile(turns, 0.999) * 1e3,
            max(turns, default=0.0) * 1e3,
            ", ".join(f"{name} {took * 1e3:.1f}" for took, name in longest),
            quantile(sample.delays, 0.5) * 1e3,
            quantile(sample.delays, 0.99) * 1e3,
            max(sample.delays, default=0.0) * 1e3,
            dict(requests),
            batches,
            metadata / 1e6,
            connections,
            rss,
        )


def main(size: str) -> None:
    """Prints the point as JSON."""
    print(json.dumps(asdict(run(Size(**json.loads(size))))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
