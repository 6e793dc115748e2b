"""Counts the instructions that one process of a FastAPI service needs for a request, on each client.

Times of a service swing by a fifth on a shared machine, and what else runs there slows it down. Instructions show which
part of a request is the client's. The service is some 50 times as slow meanwhile: fewer requests share a batch, so that
clients cost rather more than in real service. The garbage collector runs seldom: its work is the whole application's.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.services.callgrind import Callgrind, CallgrindFailed, missing
from benchmarks.services.clients import FLOOR
from benchmarks.services.http_load import HttpLoad
from benchmarks.services.process import free_port, service, service_on
from benchmarks.services.speed import order_of

CLIENTS_AT_A_TIME = 200
COLLECTOR = "tuned"
STARTUP, PATIENCE = 180.0, 240.0
"""Seconds until the service is ready, and for the last answers."""

WARM_UP, COUNTED = 8.0, 12.0
"""Seconds of requests."""


@dataclass(frozen=True)
class Count:
    """Of one client; ``instructions`` of all ``requests``."""

    records: int
    client: str
    requests: int
    instructions: int

    @property
    def per_request(self) -> float:
        return self.instructions / self.requests


@dataclass(frozen=True)
class Instructions:
    """Of each client once: they hardly differ between runs."""

    counts: Sequence[Count]

    def markdown(self) -> Iterator[str]:
        yield f"Instructions, by callgrind, {CLIENTS_AT_A_TIME} clients at a time."
        yield ""
        yield "| records a request | service on | thousand instructions a request | of them the client's |"
        yield "|---:|---|---:|---:|"
        for one in self.counts:
            floor = next((it for it in self.counts if (it.records, it.client) == (one.records, FLOOR)), None)
            own = "" if floor is None or one is floor else f"{(one.per_request - floor.per_request) / 1000:,.0f}"
            yield f"| {one.records} | {one.client} | {one.per_request / 1000:,.0f} | {own} |"


async def count(records: int, client: str, servers: str) -> Count:
    port = free_port()
    load = partial(HttpLoad, port, "/orders", partial(order_of, records), CLIENTS_AT_A_TIME)
    with tempfile.TemporaryDirectory() as directory:
        callgrind = Callgrind(Path(directory) / "callgrind.out")
        command = callgrind.command(service_on(client, port, servers, COLLECTOR))
        async with service(command, port, {}, startup=STARTUP) as running:
            async with load().flowing(patience=PATIENCE):
                await asyncio.sleep(WARM_UP)
            counted = load()
            async with callgrind.counting(running.pid), counted.flowing(patience=PATIENCE):
                await asyncio.sleep(COUNTED)
            running.terminate()
            await running.ended()
        return Count(records, client, len(counted.replies), callgrind.instructions())


async def count_all(
    records: Sequence[int], on: Sequence[str], servers: str, progress: Callable[[str], object]
) -> Instructions:
    if (tool := missing()) is not None:
        raise CallgrindFailed(f"{tool} is not installed: install valgrind, or leave out --parts instructions")
    counts = []
    for number in records:
        for client in on:
            counts.append(await count(number, client, servers))
            progress(f"{number} a request, {client}: {counts[-1].per_request:,.0f} instructions")
    return Instructions(counts)
