"""The timers are real and short; what they see is a clock that the test moves."""

from __future__ import annotations

import asyncio
import struct

from tests.broker.raw_clients.served import Served, exchange
from tests.support.manual_clock import ManualClock

METADATA = struct.pack(">ihhih", 10, 3, 0, 1, -1)


async def test_connections_without_requests_are_closed() -> None:
    clock = ManualClock()
    async with Served(clock, connections_max_idle_ms=10) as served:
        idle, busy = await served.connect(), await served.connect()
        for client in (idle, busy):
            await exchange(served, client, METADATA)
        clock.advance(0.007)
        await exchange(served, busy, METADATA)
        clock.advance(0.007)
        assert await idle.is_closed()
        assert served.server.connection_count == 1
        clock.advance(0.007)
        assert await busy.is_closed()


async def test_the_timer_is_set_again_for_a_connection_after_all_were_closed() -> None:
    clock = ManualClock()
    async with Served(clock, connections_max_idle_ms=10, num_network_threads=1) as served:
        for _ in range(2):
            client = await served.connect()
            while served.server.connection_count == 0:  # noqa: ASYNC110
                await asyncio.sleep(0)
            clock.advance(0.011)
            assert await client.is_closed()


async def test_never_with_a_negative_time() -> None:
    clock = ManualClock()
    async with Served(clock) as served:
        client = await served.connect()
        clock.advance(10**9)
        await exchange(served, client, METADATA)
