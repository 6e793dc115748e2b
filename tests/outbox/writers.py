"""Concurrent transactions whose rows show whether they were relayed once and in order."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import Any

from aioproducer.outbox import Outbox
from aioproducer.outbox.database import database_errors

OUTBOX = Outbox()


class Writers:
    """Each transaction takes counters under row locks, and writes their new values to the outbox.

    Some draw a transaction id long before the lock, some undo a savepoint, some roll back. A writer whose database goes
    connects again: counters and rows are in the same transaction, so the counters say what was committed.
    """

    def __init__(self, dsn: str, keys: int, seed: int) -> None:
        self._dsn = dsn
        self._keys = [f"k{number}" for number in range(keys)]
        self._random = Random(seed)
        self._stopped = asyncio.Event()
        self.committed = 0
        """Transactions that are known to be committed."""

    def stop(self) -> None:
        self._stopped.set()

    async def run(self, connections: int, transactions: int | None = None) -> None:
        """``transactions`` on each connection, or until it is stopped."""
        await asyncio.gather(*(self._one(transactions) for _ in range(connections)))

    async def _one(self, transactions: int | None) -> None:
        import asyncpg

        done = 0
        while not self._stopped.is_set() and done != transactions:
            try:
                connection = await asyncpg.connect(self._dsn)
            except database_errors():
                await asyncio.sleep(0.05)
                continue
            try:
                while not self._stopped.is_set() and done != transactions:
                    await self._transaction(connection)
                    done += 1
            except database_errors():
                pass
            finally:
                connection.terminate()

    async def _transaction(self, connection: Any) -> None:
        random = self._random
        keys = sorted(random.sample(self._keys, random.randint(1, 3)))
        transaction = connection.transaction()
        await transaction.start()
        if random.random() < 0.3:
            await connection.fetchval("SELECT pg_current_xact_id()")
        for key in keys:
            await asyncio.sleep(random.random() * 0.01)
            n = await connection.fetchval(
                "INSERT INTO counters VALUES ($1, 1) ON CONFLICT (key) DO UPDATE SET n = counters.n + 1 RETURNING n",
                key,
            )
            if random.random() < 0.2:
                nested = connection.transaction()
                await nested.start()
                await OUTBOX.write(connection, "orders", b"undone", key=key)
                await nested.rollback()
            await OUTBOX.write(connection, "orders", b"%d" % n, key=key)
        if random.random() < 0.15:
            await transaction.rollback()
        else:
            await transaction.commit()
            self.committed += 1


async def assert_complete(database: Any, records: Iterable[tuple[bytes | None, bytes | None]]) -> int:
    """Each key has its numbers from 1 to where its counter is, each once, in order; returns how many there are."""
    found = defaultdict(list)
    for key, value in records:
        found[(key or b"").decode()].append(int(value or b"0"))
    counters = dict(await database.fetch("SELECT key, n FROM counters"))
    assert found == {key: list(range(1, n + 1)) for key, n in counters.items()}
    return sum(map(len, found.values()))


def main() -> None:
    """A service of its own: writes to the database that the command line names until it is killed."""
    asyncio.run(Writers(sys.argv[1], keys=20, seed=os.getpid()).run(connections=5))
