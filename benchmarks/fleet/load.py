"""Records at a steady rate to partitions drawn at random, and how long each of them took."""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from aioproducer import Delivery, KafkaProducer
from benchmarks.fleet.cpu_meter import PRODUCER
from benchmarks.fleet.metered_loop import MeteredLoop

VALUE: Final = bytes(200)
TICK: Final = 0.01
"""Seconds between two sends, of slow loads more; all records of a tick are due at its beginning."""


class Sample:
    """The records that became due in a stretch of time."""

    def __init__(self) -> None:
        self.sent = 0
        self.failed = 0
        self.delays = array("d")
        """Seconds from when a record was due until it was acknowledged."""
        self._changed = asyncio.Event()

    def delivered(self, delay: float) -> None:
        self.delays.append(delay)
        self._changed.set()

    def lost(self) -> None:
        self.failed += 1
        self._changed.set()

    async def ended(self) -> None:
        """Returns when all of them have ended."""
        while self.failed + len(self.delays) < self.sent:
            self._changed.clear()
            await self._changed.wait()


class Load:
    """Sends until it is stopped, by a clock that does not wait for the producer.

    ``topics`` may change meanwhile; each has ``partitions`` partitions.
    """

    def __init__(
        self, loop: MeteredLoop, producer: KafkaProducer, topics: Sequence[str], partitions: int, random: Random
    ) -> None:
        self.topics = list(topics)
        self.sample = Sample()
        """Of the records that are due now."""
        self._loop = loop
        self._producer = producer
        self._partitions = partitions
        self._random = random
        self._next = 0.0
        self._tick = TICK
        self._task: asyncio.Task[None] | None = None

    async def everywhere(self, a_tick: int) -> None:
        """One record to each partition, so many in a tick; returns when all have ended."""
        places = [(topic, number) for topic in self.topics for number in range(self._partitions)]
        self._random.shuffle(places)
        self._next = self._loop.time()
        for first in range(0, len(places), a_tick):
            await self._until_next()
            self._send(places[first : first + a_tick], self._next)
        await self.sample.ended()

    def start(self, rate: int) -> None:
        """So many records a second from now on."""
        self._next = self._loop.time()
        self._tick = max(TICK, 1 / rate)
        self._task = asyncio.create_task(self._run(round(rate * self._tick)), name="load")
        self._loop.applications.add(self._task)

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self, a_tick: int) -> None:
        draw, size = self._random.random, self._partitions
        while True:
            await self._until_next()
            topics = self.topics
            places = [(topics[int(draw() * len(topics))], int(draw() * size)) for _ in range(a_tick)]
            self._send(places, self._next)

    async def _until_next(self) -> None:
        self._next += self._tick
        if (early := self._next - self._loop.time()) > 0:
            await asyncio.sleep(early)

    def _send(self, places: Sequence[tuple[str, int]], due: float) -> None:
        sample, send = self.sample, self._producer.send
        sample.sent += len(places)
        ended = self._noting(sample, due)
        with self._loop.meter.of(PRODUCER):
            for topic, partition in places:
                send(topic, VALUE, partition=partition).add_done_callback(ended)

    def _noting(self, sample: Sample, due: float) -> Callable[[Delivery], None]:
        loop = self._loop

        def ended(delivery: Delivery) -> None:
            if delivery.exception() is None:
                sample.delivered(max(0.0, loop.now - due))
            else:
                sample.lost()

        return ended


def quantile(delays: array[float], share: float) -> float:
    """The least delay that so large a share does not exceed, in seconds; 0 without delays."""
    ordered = sorted(delays)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
