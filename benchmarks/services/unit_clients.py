"""Ways in which the service of ``app.py`` writes each request to two topics: as a unit, in a transaction of its
own behind a lock, and without transactions.

All of them wait for all replicas, and 5 ms for more records.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from benchmarks.services.clients import LINGER_MS, TOPIC, Send, Sending

SECOND_TOPIC = "audit"
UNITS, LOCK, PLAIN = "units", "lock", "plain"
WINDOW_MS = 5


class UnitsSend:
    """Writes a request as a unit, and knows how long commits take."""

    def __init__(self, producer: object) -> None:
        from aioproducer import KafkaProducer

        assert isinstance(producer, KafkaProducer)
        self._producer = producer

    async def __call__(self, values: list[bytes], key: bytes) -> tuple[int, int]:
        async with self._producer.unit() as unit:
            for value in values:
                await unit.send(TOPIC, value, key=key)
                await unit.send(SECOND_TOPIC, value, key=key)
        metadata = unit.result()[0]
        return metadata.partition, metadata.offset

    def figures(self) -> dict[str, float]:
        """The metrics of the last minute."""
        found = self._producer.metrics()
        return {name: found[name] for name in ("unit-commit-time-avg", "unit-commit-time-max", "units-per-commit-avg")}


@contextlib.asynccontextmanager
async def units(servers: str, window_ms: int = 0) -> AsyncIterator[Send]:
    from aioproducer import KafkaProducer

    async with KafkaProducer(
        bootstrap_servers=servers,
        linger_ms=LINGER_MS,
        transactional_id=f"units-{window_ms}",
        transaction_group_window_ms=window_ms,
        metrics_sample_window_ms=1000,
    ) as producer:
        await producer.init_transactions()
        yield UnitsSend(producer)


@contextlib.asynccontextmanager
async def units_in_a_window(servers: str) -> AsyncIterator[Send]:
    async with units(servers, WINDOW_MS) as send:
        yield send


@contextlib.asynccontextmanager
async def lock(servers: str) -> AsyncIterator[Send]:
    """A transaction for each request. Requests take turns, as the producer has one at a time."""
    from aioproducer import KafkaProducer

    turn = asyncio.Lock()
    async with KafkaProducer(bootstrap_servers=servers, linger_ms=0, transactional_id="lock") as producer:
        await producer.init_transactions()

        async def send(values: list[bytes], key: bytes) -> tuple[int, int]:
            async with turn, producer.transaction():
                deliveries = [producer.send(topic, one, key=key) for one in values for topic in (TOPIC, SECOND_TOPIC)]
            metadata = deliveries[0].result()
            return metadata.partition, metadata.offset

        yield send


@contextlib.asynccontextmanager
async def plain(servers: str) -> AsyncIterator[Send]:
    """Without transactions: a failure may leave a record in one topic only."""
    from aioproducer import KafkaProducer

    async with KafkaProducer(bootstrap_servers=servers, linger_ms=LINGER_MS) as producer:

        async def send(values: list[bytes], key: bytes) -> tuple[int, int]:
            deliveries = [producer.send(topic, one, key=key) for one in values for topic in (TOPIC, SECOND_TOPIC)]
            first = await deliveries[0]
            for delivery in deliveries:
                await delivery
            return first.partition, first.offset

        yield send


UNIT_CLIENTS: dict[str, Sending] = {
    UNITS: units,
    f"{UNITS}-{WINDOW_MS}ms": units_in_a_window,
    PLAIN: plain,
    LOCK: lock,
}
"""By name, in the order in which they take turns."""

WINDOWS = {UNITS: 0, f"{UNITS}-{WINDOW_MS}ms": WINDOW_MS}
"""The windows of those that are units, in milliseconds."""
