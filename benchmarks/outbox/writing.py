"""The process of the service: commits rows at a steady rate, a transaction each, and prints when each was committed."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from aioproducer.outbox import Outbox

CONNECTIONS = 4


async def write(dsn: str, topic: str, rate: float, seconds: float, size: int) -> dict[int, float]:
    """By number, the time at which a row's commit returned."""
    import asyncpg

    outbox, times = Outbox(), {}
    began = time.monotonic()

    async def some(first: int) -> None:
        connection = await asyncpg.connect(dsn)
        try:
            for number in range(first, int(rate * seconds), CONNECTIONS):
                await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
                value = b"%d:" % number
                async with connection.transaction():
                    await outbox.write(connection, topic, value.ljust(size, b"x"), key=b"%d" % (number % 1000))
                times[number] = time.monotonic()
        finally:
            await connection.close()

    await asyncio.gather(*(some(first) for first in range(CONNECTIONS)))
    return times


def main() -> None:
    dsn, topic, rate, seconds, size = sys.argv[1:]
    print(json.dumps(asyncio.run(write(dsn, topic, float(rate), float(seconds), int(size)))), flush=True)
