"""An application whose database decides about transactions of Kafka (KIP-939), and which crashes where it is told to.

    python -c "…main()" SERVERS DATABASE keep|end COUNT [STEP]

Each transaction is a row in the database and records in Kafka, and has both or neither. ``keep``: the broker keeps
prepared transactions. ``end``: it does not (Kafka up to 4.3.1), so what is prepared is ended under its own identity.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import uuid

from aioproducer import KafkaProducer, PreparedTxnState
from aioproducer.admin import KafkaAdmin

TOPIC, PARTITIONS, ID = "two-phases", 2, "two-phases-1"

CRASHED = 9
STEPS = (
    "begun",
    "sent",
    "preparing",
    "prepared",
    "stored",
    "decided",
    "completing",
    "completed",
    "recovered",
)
"""Where it may crash. The row is ``stored`` and not yet committed, which decides. What is under way (``preparing``,
``completing``) crashes some milliseconds after it began."""

RECOVERING = "recovering"
"""It crashes when it has found a transaction that is open."""


class Database:
    """The rows, and the state of the Kafka transaction that belongs to the last of them."""

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path)
        with self.connection:
            self.connection.execute("create table if not exists rows (number integer primary key, attempt text)")
            self.connection.execute("create table if not exists prepared (one integer primary key, state text)")

    def next_number(self) -> int:
        (last,) = self.connection.execute("select coalesce(max(number), 0) from rows").fetchone()
        return int(last) + 1

    def rows(self) -> list[str]:
        return [f"{number} {attempt}" for number, attempt in self.connection.execute("select * from rows")]

    def state(self) -> PreparedTxnState:
        found = self.connection.execute("select state from prepared").fetchone()
        return PreparedTxnState.parse(found[0] if found else "")


class Application:
    def __init__(self, servers: str, database: str, recovery: str, crash_at: str) -> None:
        self.servers = servers
        self.database = Database(database)
        self.recovery = recovery
        self.crash_at = crash_at

    def crash(self, step: str) -> None:
        assert step in (*STEPS, RECOVERING)
        if step == self.crash_at:
            os._exit(CRASHED)

    async def run(self, count: int) -> None:
        async with KafkaProducer(
            bootstrap_servers=self.servers, transactional_id=ID, transaction_two_phase_commit_enable=True
        ) as producer:
            await self.recover(producer)
            first = self.database.next_number()
            for number in range(first, first + count):
                if number == first + 1 and self.crash_at == "preparing":
                    asyncio.get_running_loop().call_later(0.002, self.crash, "preparing")
                await self.transaction(producer, number)

    async def recover(self, producer: KafkaProducer) -> None:
        state = self.database.state()
        if self.recovery == "keep":
            if await producer.init_transactions(keep_prepared_txn=True):
                self.crash(RECOVERING)
                await producer.complete_transaction(state)
        else:
            async with KafkaAdmin(bootstrap_servers=self.servers) as admin:
                found = (await admin.describe_transactions([ID]))[ID]
                self.crash(RECOVERING)
                if found and (found.state, found.producer_id, found.producer_epoch) == (
                    "Ongoing",
                    state.producer_id,
                    state.epoch,
                ):
                    identity = state.producer_id, state.epoch
                    await admin.end_transaction(ID, identity, committed=True, second_protocol=True)
            await producer.init_transactions()
        self.crash("recovered")

    async def transaction(self, producer: KafkaProducer, number: int) -> None:
        attempt = uuid.uuid4().hex
        await producer.begin_transaction()
        self.crash("begun")
        for part in range(100):
            _ = await producer.enqueue(
                TOPIC, b"%d %s %d" % (number, attempt.encode(), part), partition=part % PARTITIONS
            )
        self.crash("sent")
        state = await producer.prepare_transaction()
        self.crash("prepared")
        connection = self.database.connection
        connection.execute("insert into rows values (?, ?)", (number, attempt))
        connection.execute("insert or replace into prepared values (1, ?)", (str(state),))
        self.crash("stored")
        connection.commit()
        self.crash("decided")
        if self.crash_at == "completing":
            asyncio.get_running_loop().call_later(0.001, self.crash, "completing")
        assert await producer.complete_transaction(state)
        self.crash("completed")


def main() -> None:
    servers, database, recovery, count, *crash_at = sys.argv[1:]
    asyncio.run(Application(servers, database, recovery, crash_at[0] if crash_at else "").run(int(count)))
