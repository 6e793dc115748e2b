"""The ways of handing records over that are the same for every client."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

TICK = 0.001
"""Seconds between two portions of paced records."""
SAMPLE = 20
"""One in this many records is timed, so that the clock does not dominate."""


async def tasks(
    send: Callable[[str, bytes], Awaitable[object]], topic: str, value: bytes, records: int, count: int
) -> tuple[Counter[str], list[float]]:
    """``count`` tasks, each of which awaits a record before it sends the next."""
    failures: Counter[str] = Counter()
    latencies: list[float] = []
    every = 1 if count == 1 else SAMPLE
    clock = time.perf_counter

    async def task(share: int) -> None:
        for number in range(share):
            try:
                if number % every:
                    await send(topic, value)
                else:
                    began = clock()
                    await send(topic, value)
                    latencies.append(clock() - began)
            except Exception as error:  # whatever it is: it is what became of this record
                failures[type(error).__name__] += 1

    each, rest = divmod(records, count)
    await asyncio.gather(*(task(each + (number < rest)) for number in range(count)))
    return failures, latencies


async def paced(
    send: Callable[[], object],
    send_timed: Callable[[Callable[[], None]], object],
    pause: Callable[[float], Awaitable[object]],
    records: int,
    rate: float,
) -> list[float]:
    """The latencies, from when a record was due, so that a producer that holds the caller up cannot hide it.

    ``send_timed`` takes what is to be called when the record is acknowledged; ``pause`` gives the producer so many
    seconds.
    """
    clock = time.perf_counter
    latencies: list[float] = []

    def acknowledged(due: float) -> None:
        latencies.append(clock() - due)

    start, sent = clock(), 0
    while sent < records:
        for number in range(sent, min(records, int((clock() - start) * rate) + 1)):
            if number % SAMPLE:
                send()
            else:
                send_timed(partial(acknowledged, start + number / rate))
            sent = number + 1
        await pause(TICK)
    return latencies
