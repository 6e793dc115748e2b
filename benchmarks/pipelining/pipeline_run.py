"""One run of ``pipeline``: one setting over one line, real or simulated."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from aioproducer import Delivery, KafkaProducer
from aioproducer.testing.simulation.loop import SimulatedClock, SimulatedLoop
from benchmarks.pipelining.far_broker import TOPIC, far_broker
from benchmarks.pipelining.virtual_line import over_virtual_line

AUTO = "auto"
LINGERS_MS = (0, 5, 20, 100)
PACED, SATURATING = "paced", "saturating"

VALUE = bytes(200)
RATE = 1000
"""Records a second, paced: 200 kB/s, so that every line can carry it in batches of batch.size."""

BUFFER = 2 << 20
"""buffer.memory: more than any window holds, and not so much that it takes long to empty at the end."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Line:
    """What comes, and where it goes."""

    arrivals: str
    round_trip_ms: int
    window: int
    partitions: int = 1

    @property
    def warm_up(self) -> float:
        """Seconds in which five round trips show the line, and its windows, for what they are."""
        return 0.5 + 5 * self.round_trip_ms / 1000


@dataclass(frozen=True)
class Figures:
    """One run. ``setting`` is linger.ms, or "auto". Latencies are from when a record comes; None if saturating."""

    line: Line
    setting: str
    round: int
    records_per_s: float
    requests_per_s: float
    batch_bytes: float
    p50_ms: float | None
    p99_ms: float | None


async def measure(line: Line, setting: str, round_: int, seconds: float) -> Figures:
    async with far_broker(line.round_trip_ms, window=line.window, partitions=line.partitions) as broker:
        return await _run(KafkaProducer, line, setting, round_, seconds, time.perf_counter, broker.bootstrap_servers)


def simulate(line: Line, setting: str, round_: int, seconds: float) -> Figures:
    """In virtual time, in which the timestamps of records are, too: their sizes depend on them."""

    async def run(bootstrap_servers: str) -> Figures:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)

        def made(**config: Any) -> KafkaProducer:
            producer = KafkaProducer(**config)
            producer._clock = SimulatedClock(loop, lambda: 0.0)
            return producer

        return await _run(made, line, setting, round_, seconds, loop.time, bootstrap_servers)

    return over_virtual_line(line.round_trip_ms, window=line.window, partitions=line.partitions, run=run)


def config_of(setting: str) -> dict[str, Any]:
    """auto may choose whatever the fixed settings choose among."""
    if setting == AUTO:
        return {"pipeline": AUTO, "linger_ms": max(LINGERS_MS)}
    return {"linger_ms": int(setting)}


async def _run(
    make: Callable[..., KafkaProducer],
    line: Line,
    setting: str,
    round_: int,
    seconds: float,
    clock: Clock,
    bootstrap_servers: str,
) -> Figures:
    latencies: list[float] = []
    async with make(
        bootstrap_servers=bootstrap_servers,
        max_in_flight_requests_per_connection=line.window,
        buffer_memory=BUFFER,
        **config_of(setting),
    ) as producer:
        for partition in (*range(line.partitions), *range(line.partitions)):
            # The first batch of a producer id is sent alone; the answers have the window.
            await producer.send(TOPIC, VALUE, partition=partition)
        send = partial(_paced, Random(round_), latencies) if line.arrivals == PACED else _saturate
        sending = asyncio.create_task(send(producer, line, seconds, clock))
        await asyncio.sleep(line.warm_up)
        begun, before = clock(), _totals(producer)
        await asyncio.sleep(seconds)
        elapsed, after = clock() - begun, _totals(producer)
        await sending
    records, requests, batches, sent = (now - then for now, then in zip(after, before, strict=True))
    latencies.sort()
    return Figures(
        line,
        setting,
        round_,
        records / elapsed,
        requests / elapsed,
        sent / batches,
        latencies[len(latencies) // 2] if latencies else None,
        latencies[len(latencies) * 99 // 100] if latencies else None,
    )


def _totals(producer: KafkaProducer) -> tuple[float, float, float, float]:
    """Records delivered, requests, batches and their bytes."""
    metrics = producer.metrics()
    return (
        metrics["record-delivered-total"],
        metrics.node(0)["request-total"],
        metrics["batch-total"],
        metrics.topic(TOPIC)["byte-total"],
    )


async def _paced(
    random: Random, latencies: list[float], producer: KafkaProducer, line: Line, seconds: float, clock: Clock
) -> None:
    """Latencies, in milliseconds, are those of the records that come after the warm-up."""

    def note(came: float) -> Callable[[Delivery], object]:
        return lambda delivery: latencies.append((clock() - came) * 1000)

    begun = clock()
    for number, at in enumerate(arrivals(random, line.warm_up + seconds)):
        if (early := begun + at - clock()) > 0:
            await asyncio.sleep(math.ceil(round(early * 1000, 3)) / 1000)  # uvloop would round down
        delivery = producer.send(TOPIC, VALUE, partition=number % line.partitions)
        if at >= line.warm_up:
            delivery.add_done_callback(note(begun + at))
    await producer.flush()


async def _saturate(producer: KafkaProducer, line: Line, seconds: float, clock: Clock) -> None:
    end = clock() + line.warm_up + seconds
    number = 0
    while clock() < end:
        number += 1
        _ = await producer.enqueue(TOPIC, VALUE, partition=number % line.partitions)
    await producer.flush()


def arrivals(random: Random, seconds: float) -> Iterator[float]:
    """Poisson arrivals, in seconds from the beginning; whole milliseconds, as timers are no finer."""
    at = 0.0
    while (at := at + random.expovariate(RATE)) < seconds:
        yield math.floor(at * 1000) / 1000
