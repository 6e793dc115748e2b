"""Does something long in slices of half a millisecond, between which other tasks get a turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TypeVar

from aioproducer.timing.time_slice import TimeSlice

T = TypeVar("T")


async def in_slices(steps: Generator[None, None, T]) -> T:
    """What the steps return at their end. A step must be short; it ends where the generator yields."""
    time_slice = TimeSlice(asyncio.get_running_loop())
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
        if time_slice.over():
            await asyncio.sleep(0)
            time_slice.begin()
