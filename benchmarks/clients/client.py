"""The interface of a benchmarked client: it describes itself, and measures itself during a run.

A client measures itself in a process of its own. One that is a Python library is a ``PythonClient``: it says how it
starts, closes and hands records over, in the way its users would do it, so that nothing stands between the clock and
the client. One in another language runs a program and passes on what that says.
"""

from __future__ import annotations

import contextlib
import gc
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import ClassVar

from benchmarks.harness.heartbeat import Heartbeat
from benchmarks.harness.statistics import quantiles
from benchmarks.harness.usage import cpu_seconds, peak_rss
from benchmarks.works import ways
from benchmarks.works.payload import Payload
from benchmarks.works.run import Measurement, Run
from benchmarks.works.works import STREAM, Work

Latencies = list[float]
"""Seconds, of a sample of the records."""


class Missing(Exception):
    """The client cannot run here; the message says what it lacks."""


class Client(ABC):
    """A producer with acks=all, idempotent if it can be, and what a Run says; all else is its own default."""

    idempotent: ClassVar[bool] = True
    ways: ClassVar[Iterable[str]] = (STREAM,)
    share: ClassVar[int] = 1
    """It sends one in this many of a work's records."""

    @classmethod
    def can(cls, work: Work) -> bool:
        return work.way in cls.ways

    @classmethod
    @abstractmethod
    def about(cls) -> str:
        """Its version, and what else decides its speed; raises Missing if it cannot run here."""

    @classmethod
    @abstractmethod
    async def measure(cls, run: Run) -> Measurement: ...


class PythonClient(Client):
    """Made, used and closed within one event loop; beside the constructor's, it has the methods of its ``ways``."""

    beats: ClassVar[bool] = True
    """Whether it works on the event loop, so that how long that stands still is its doing."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.topic = run.topic
        self.payload = Payload(Path(run.payload), run.topic_names(), keyed=run.keyed, keys=run.keys)

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def stream(self, records: int) -> Counter[str]:
        """Sends records as fast as they are taken, and waits for all; returns the failures by kind."""
        raise NotImplementedError

    def awaitable_send(self) -> Callable[[str, bytes], Awaitable[object]]:
        """``await call(topic, value)`` returns when the record is acknowledged, or raises."""
        raise NotImplementedError

    async def tasks(self, records: int) -> tuple[Counter[str], Latencies]:
        return await ways.tasks(self.awaitable_send(), self.topic, self.payload.values[0], records, self.run.tasks)

    async def paced(self, records: int) -> tuple[Counter[str], Latencies]:
        """Hands ``run.rate`` records a second over, whatever becomes of them meanwhile."""
        raise NotImplementedError

    @classmethod
    async def measure(cls, run: Run) -> Measurement:
        client = cls(run)
        try:
            await client.start()
            # Connections, metadata, producer id, and whatever else a client puts off until it is needed.
            failures, _ = await client._work(run.warm_up)
            if failures:
                raise RuntimeError(f"records of the warm-up failed: {dict(failures)}")
            gc.collect()
            heart = Heartbeat()
            async with heart if cls.beats else contextlib.nullcontext():
                cpu, start = cpu_seconds(), time.perf_counter()
                failures, latencies = await client._work(run.records)
                seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
            return Measurement(
                run.records,
                seconds,
                cpu,
                peak_rss(),
                dict(failures),
                latency=quantiles(latencies),
                stall=quantiles(heart.late),
                computing=quantiles(heart.computing),
            )
        finally:
            await client.close()

    async def _work(self, records: int) -> tuple[Counter[str], Latencies]:
        if self.run.rate:
            return await self.paced(records)
        if self.run.tasks:
            return await self.tasks(records)
        return await self.stream(records), []
