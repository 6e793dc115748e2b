"""Does something long in slices of half a millisecond, between which other tasks get a turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TypeVar

from aioproducer.errors import NetworkException
from aioproducer.net.broker_link import BrokerLink
from aioproducer.protocol.codec import Encoding
from aioproducer.protocol.schema import Request, Response
from aioproducer.timing.time_slice import TimeSlice

T = TypeVar("T")
R = TypeVar("R", bound=Response)


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


async def call_in_slices(link: BrokerLink, request: Request, response_class: type[R], at_most: int | None = None) -> R:
    """As the link's ``call``, for what may be large: the loop gets turns while it is written."""
    connection = link.connection
    if connection is None:
        raise NetworkException(f"not connected to {link}")
    version = link.api_versions.latest_usable_version(type(request), at_most)
    body = await in_slices(Encoding(request, version).steps())
    return await connection.call(request, response_class, version, body)
