"""What tests of the outbox share: the database that they need, and what readers see."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer.outbox import OutboxRelay
from aioproducer.reader import PartitionReader, Record
from aioproducer.testing.postgresql import Postgresql, PostgresqlUnavailable


def require_postgresql() -> None:
    """Without PostgreSQL the test is skipped, or fails where ``$CI`` is ``true``."""
    try:
        Postgresql.require()
    except PostgresqlUnavailable as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must run the tests against real PostgreSQL: {missing}", pytrace=False)
        pytest.skip(f"no PostgreSQL to test against: {missing}")


async def read_committed(servers: str, topic: str = "orders", partitions: int = 3) -> list[Record]:
    """The committed records of all partitions, one partition after the other."""
    found: list[Record] = []
    for partition in range(partitions):
        async with PartitionReader(servers, topic, partition, 0, isolation_level="read_committed") as reader:
            found += [record async for record in reader.read_to_end()]
    return found


@asynccontextmanager
async def running(relay: OutboxRelay) -> AsyncIterator[asyncio.Task[None]]:
    """The relay runs, and is cancelled at the end if it still does."""
    task = asyncio.create_task(relay.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def until(condition: Callable[[], bool]) -> None:
    """Waits until the condition is true."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - of a database, a relay or a broker, which set no event
            await asyncio.sleep(0.01)


async def until_sql(database: Any, question: str) -> None:
    """Waits until the database answers the question with true."""
    async with asyncio.timeout(30):
        while not await database.fetchval(question):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def relayed(relay: OutboxRelay, rows: int) -> None:
    """Waits until the relay has relayed so many rows."""
    await until(lambda: relay.metrics()["row-relayed-total"] >= rows)
