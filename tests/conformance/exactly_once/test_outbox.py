"""The outbox on real PostgreSQL and real Kafka, while relays, a service, the database and the broker are killed.

confluent-kafka's read_committed consumer judges: what was committed is there once, in order per key. A campaign sets
AIOPRODUCER_OUTBOX_KILLS, and --timeout.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from aioproducer.outbox import Outbox
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.postgresql import Postgresql
from aioproducer.testing.process_guard import ProcessGuard
from tests.conformance.foreign_consumer import read_committed
from tests.conformance.topics import create_topic
from tests.outbox.servers import require_postgresql, until, until_sql
from tests.outbox.writers import Writers, assert_complete

log = logging.getLogger(__name__)

CHECKOUT = str(Path(__file__).parents[3])
PARTITIONS = 3
KILLS = int(os.environ.get("AIOPRODUCER_OUTBOX_KILLS", "10"))


@pytest.fixture
def postgresql() -> Iterator[Postgresql]:
    require_postgresql()
    with Postgresql() as server:
        yield server


class Processes:
    """Two relays of one name, each the command line, and a service that writes."""

    def __init__(self, guard: ProcessGuard, directory: Path, dsn: str, servers: str) -> None:
        self._guard = guard
        self._directory = directory
        relay = [sys.executable, "-m", "aioproducer", "outbox", "--database", dsn, "--bootstrap-server", servers]
        relay += ["-X", "max.block.ms=10000", "--report", "1"]
        write = f"import sys; sys.path.append({CHECKOUT!r}); from tests.outbox.writers import main; main()"
        self._commands = [relay, relay, [sys.executable, "-c", write, dsn]]
        self._said_before = [0] * len(self._commands)
        self._running = [self._start(number) for number in range(len(self._commands))]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        with self._output(number).open("ab") as output:
            self._said_before[number] = output.tell()
            return self._guard.spawn(self._commands[number], cwd=self._directory, stdout=output, stderr=output)

    def _output(self, number: int) -> Path:
        return self._directory / f"process{number}"

    def _runs(self, number: int) -> bool:
        """It has said something since it was started, so that it handles signals."""
        return self._output(number).stat().st_size > self._said_before[number]

    def kill(self, number: int) -> None:
        """Kills it and starts it again."""
        self._running[number].kill()
        self._running[number].wait()
        self._running[number] = self._start(number)

    def check(self) -> None:
        """All still run."""
        for number, process in enumerate(self._running):
            assert process.poll() is None, self._output(number).read_text()[-3000:]

    def stop_writing(self) -> None:
        """The service ends."""
        self._running[2].kill()
        self._running[2].wait()

    async def stop(self) -> None:
        """The relays end by themselves when they are asked to."""
        relays = self._running[:2]
        for number, process in enumerate(relays):
            await until(partial(self._runs, number))
            process.terminate()
        assert [process.wait(30) for process in relays] == [0, 0]


def _has_committed(writers: Writers, transactions: int) -> bool:
    return writers.committed >= transactions


async def test_kills(kafka_431: ApacheKafka, postgresql: Postgresql, tmp_path: Path) -> None:
    import asyncpg

    random = Random(3)
    await create_topic(kafka_431, "orders", partitions=PARTITIONS)
    database = await asyncpg.connect(postgresql.dsn())
    await database.execute(Outbox().schema() + "CREATE TABLE counters (key text PRIMARY KEY, n int NOT NULL)")
    await database.close()
    writers = Writers(postgresql.dsn(), keys=20, seed=3)
    writing = asyncio.create_task(writers.run(connections=10))
    with ProcessGuard() as guard:
        processes = Processes(guard, tmp_path, postgresql.dsn(), kafka_431.bootstrap_servers)
        for kill in range(KILLS):
            enough = writers.committed + 50
            if kill % 5 == 4:
                postgresql.kill()
                postgresql.start_again()
            elif kill == KILLS // 2:
                kafka_431.kill_node(1)
                await asyncio.to_thread(kafka_431.start_node, 1)
            else:
                processes.kill(random.randrange(3))
            await until(partial(_has_committed, writers, enough))
            processes.check()
        processes.stop_writing()
        writers.stop()
        await writing
        database = await asyncpg.connect(postgresql.dsn())
        try:
            await until_sql(database, "SELECT count(*) = 0 FROM outbox")
            await processes.stop()
            found = await asyncio.to_thread(read_committed, kafka_431.bootstrap_servers, "orders", PARTITIONS)
            rows = await assert_complete(database, [record for one in found.values() for record in one])
        finally:
            await database.close()
    log.info("%d rows, each once and in order after %d kills", rows, KILLS)
    assert rows >= writers.committed
