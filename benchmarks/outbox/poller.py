"""A relay as services write it: polls by id, sends with aiokafka, waits for all, remembers the id in the database.

Debezium's JDBC-like polling is the model: at least once, with an idempotent producer, acks=all. It skips rows whose
transactions commit late (``docs/internals/outbox.md``); that costs nothing here, and is no part of the measurement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

IDLE_S = 0.01
"""Seconds between two looks at an empty table; Debezium's poll.interval.ms is half a second."""


async def poll(dsn: str, servers: str, most_rows: int, done: Callable[[Sequence[bytes]], object]) -> None:
    """Relays until it is cancelled; ``done`` gets the values that were acknowledged."""
    import asyncpg
    from aiokafka import AIOKafkaProducer

    database = await asyncpg.connect(dsn)
    producer = AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True, acks="all")
    await producer.start()
    try:
        await database.execute("CREATE TABLE IF NOT EXISTS polled (last bigint NOT NULL)")
        last = await database.fetchval("SELECT max(last) FROM polled") or 0
        while True:
            rows: list[Any] = await database.fetch(
                "SELECT id, topic, key, value FROM outbox WHERE id > $1 ORDER BY id LIMIT $2", last, most_rows
            )
            if not rows:
                await asyncio.sleep(IDLE_S)
                continue
            sent = [await producer.send(row["topic"], row["value"], key=row["key"]) for row in rows]
            await asyncio.gather(*sent)
            done([row["value"] for row in rows])
            last = rows[-1]["id"]
            async with database.transaction():
                await database.execute("DELETE FROM polled")
                await database.execute("INSERT INTO polled VALUES ($1)", last)
                await database.execute("DELETE FROM outbox WHERE id <= $1", last)
    finally:
        await producer.stop()
        await database.close()
