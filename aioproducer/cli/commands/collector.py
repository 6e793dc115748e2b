"""Runs Python's full garbage collections while the broker is idle.

By default Python looks at all of them whenever their number has grown by a quarter. With the topics and partitions of a
large cluster that takes most of a second, in which the broker answers no request. So only young objects are collected
while the broker is busy. Nearly all others are freed without the collector, because they are in no cycle.
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
"""New objects that survived since the last full collection: with fewer of them there is nothing to gain."""

TOO_MANY = 8_000_000
"""With so many new objects, a full collection runs even if the broker is busy: they may all be garbage."""

IDLE = 0.01
"""The broker counts as idle if it takes at most this share of a core: less than for a client that sends 100 records in
a second, and that would notice a collection: among a million objects it takes 0.3 s."""

_NEVER = 2**31 - 1


def is_due(objects: int, busy: float) -> bool:
    """Whether to look at all objects now: ``objects`` may have survived, and the process took ``busy`` of a core."""
    return objects >= TOO_MANY or (objects >= WORTH_IT and busy <= IDLE)


@contextlib.contextmanager
def collecting() -> Iterator[None]:
    """Runs collections on the event loop when they are due. Objects that exist already are never looked at again."""
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
    """``objects_each``: Python collects the middle generation after so many more objects were made than freed."""
    while True:
        looked, used = time.monotonic(), time.process_time()
        await asyncio.sleep(INTERVAL)
        busy = (time.process_time() - used) / (time.monotonic() - looked)
        if is_due(gc.get_count()[2] * objects_each, busy):
            gc.collect()
