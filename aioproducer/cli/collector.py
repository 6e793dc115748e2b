"""When Python's garbage collector looks at all objects of a broker's process.

By itself Python looks at all of them whenever their number has grown by a quarter. With the topics and partitions of a
large cluster that takes most of a second, and nobody is served meanwhile. So only young objects are collected while the
broker is busy. Nearly all others are freed without the collector, as they are in no cycle.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import Iterator

INTERVAL = 1.0
"""Seconds from one look to the next."""

WORTH_IT = 100_000
"""Objects that have come and stayed since the last full collection: with fewer of them there is nothing to gain."""

TOO_MANY = 8_000_000
"""With so many there is a full collection however busy the broker is: they may all be garbage."""

IDLE = 0.1
"""The share of a core that an idle broker takes at most."""

_NEVER = 2**31 - 1


def is_due(objects: int, busy: float) -> bool:
    """Whether to look at all objects now: so many may have stayed, and the process took this share of a core."""
    return objects >= TOO_MANY or (objects >= WORTH_IT and busy <= IDLE)


@contextlib.contextmanager
def collecting() -> Iterator[None]:
    """Collects when that is due, on the event loop that runs. What is there already is never looked at again."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(thresholds[0], thresholds[1], _NEVER)
    task = asyncio.get_running_loop().create_task(_collect(thresholds[0] * thresholds[1]), name="collector")
    try:
        yield
    finally:
        task.cancel()
        gc.set_threshold(*thresholds)
        gc.unfreeze()


async def _collect(objects_each: int) -> None:
    """``objects_each``: the middle generation is collected whenever so many objects more have been made than freed."""
    while True:
        looked, used = time.monotonic(), time.process_time()
        await asyncio.sleep(INTERVAL)
        busy = (time.process_time() - used) / (time.monotonic() - looked)
        if is_due(gc.get_count()[2] * objects_each, busy):
            gc.collect()
