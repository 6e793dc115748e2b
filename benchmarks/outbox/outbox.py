"""``python -m benchmarks outbox``: a backlog of rows, and rows that are committed one by one, relayed to Kafka.

The relay and a plain poller (``poller.py``) take turns, each in a process of its own, with PostgreSQL, Kafka and the
writing service beside it on the machine. The delay of a row is from the return of its commit to the acknowledgement of
its record: the relay's transaction is committed, the poller's batch is acknowledged.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.outbox import Outbox
from aioproducer.testing.kafka.apache_kafka import ApacheKafka, KafkaFailed, KafkaUnavailable
from aioproducer.testing.postgresql import Postgresql, PostgresqlFailed, PostgresqlUnavailable
from benchmarks.harness import command
from benchmarks.harness.arguments import list_of, positive, some_of
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.processes import python_command
from benchmarks.harness.statistics import Spread, quantiles
from benchmarks.outbox.relaying import BACKLOG, RELAY, WAYS

PARTITIONS = 6
SIZE = 200
"""Bytes of a value."""
ROWS_PER_S = 20_000
DELAY_MS = 10.0
_numbers = itertools.count()


@dataclass(frozen=True)
class Turn:
    """One way's turn: rows per second of the backlog, and delays in milliseconds of the rows that came one by one."""

    way: str
    round: int
    rows_per_s: float
    p50_ms: float
    p99_ms: float
    delayed: int
    """The rows whose delays these are."""
    lost: int
    """Rows that were committed and not acknowledged."""


@dataclass(frozen=True)
class Report:
    """All turns."""

    environment: Environment
    rows: int
    rate: int
    seconds: int
    most_rows: int
    turns: Sequence[Turn]

    def verdicts(self) -> Iterator[Verdict]:
        mine = [turn for turn in self.turns if turn.way == RELAY]
        if mine:
            speed = Spread.of([turn.rows_per_s for turn in mine])
            yield Verdict(f"rows/s ≥ {ROWS_PER_S:,}", str(speed), speed.median >= ROWS_PER_S)
            delay = Spread.of([turn.p50_ms for turn in mine])
            yield Verdict(f"median delay < {DELAY_MS:g} ms", str(delay), delay.median < DELAY_MS)

    def problems(self) -> list[str]:
        lost = [
            f"{turn.way}, round {turn.round}: {turn.lost} of {turn.delayed + turn.lost} rows were not acknowledged"
            for turn in self.turns
            if turn.lost and turn.way == RELAY
        ]
        return lost + [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [f"A backlog of {self.rows:,} rows, in pages of {self.most_rows:,}; then {self.rate:,} commits/s of a "]
        lines[0] += f"row each for {self.seconds} s. Values of {SIZE} bytes; medians."
        lines += ["", "| way | rows/s | delay p50 | delay p99 | rows never relayed |", "|---|---:|---:|---:|---:|"]
        for way in dict.fromkeys(turn.way for turn in self.turns):
            mine = [turn for turn in self.turns if turn.way == way]
            speed, p50, p99 = (
                median(getattr(turn, name) for turn in mine) for name in ("rows_per_s", "p50_ms", "p99_ms")
            )
            lost, rows = sum(turn.lost for turn in mine), sum(turn.lost + turn.delayed for turn in mine)
            lines.append(f"| {way} | {speed:,.0f} | {p50:.1f} ms | {p99:.1f} ms | {lost:,} of {rows:,} |")
        return [*lines, "", *Verdict.table(list(self.verdicts()))]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())


async def turn(way: str, round_: int, postgresql: Postgresql, servers: str, options: argparse.Namespace) -> Turn:
    """One way, once, on a database and a topic of its own."""
    import asyncpg

    number = next(_numbers)
    topic, name = f"outbox{number}", f"outbox{number}"
    async with KafkaAdmin(bootstrap_servers=servers) as admin:
        await admin.create_topic(NewTopic(topic, PARTITIONS))
    connection = await asyncpg.connect(postgresql.dsn())
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    dsn = postgresql.dsn(name)
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(Outbox().schema(notify=way == RELAY))
        await connection.execute(
            "INSERT INTO outbox (topic, key, value) SELECT $1, (i % 1000)::text::bytea, rpad($2, $3, 'x')::bytea "
            "FROM generate_series(1, $4) i",
            topic,
            BACKLOG.decode(),
            SIZE,
            options.rows,
        )
        await connection.execute("VACUUM ANALYZE outbox")
    finally:
        await connection.close()
    pipe = asyncio.subprocess.PIPE
    arguments = (way, dsn, servers, str(options.most_rows), str(options.rows), options.loop)
    relaying = await asyncio.create_subprocess_exec(
        *python_command("from benchmarks.outbox.relaying import main; main()", *arguments),
        stdin=pipe,
        stdout=pipe,
        limit=1 << 26,
    )
    assert relaying.stdin is not None
    assert relaying.stdout is not None
    try:
        speed = json.loads(await relaying.stdout.readline())["rows_per_s"]
        writing = await asyncio.create_subprocess_exec(
            *python_command(
                "from benchmarks.outbox.writing import main; main()",
                *(dsn, topic, str(options.rate), str(options.seconds), str(SIZE)),
            ),
            stdout=pipe,
        )
        said, _ = await writing.communicate()
        committed = {int(row): at for row, at in json.loads(said).items()}
        await asyncio.sleep(1)  # for the last rows
    finally:
        relaying.stdin.close()
    acknowledged = {int(row): at for row, at in json.loads(await relaying.stdout.readline())["times"].items()}
    await relaying.wait()
    delays = quantiles([(acknowledged[row] - at) * 1000 for row, at in committed.items() if row in acknowledged])
    return Turn(
        way,
        round_,
        speed,
        delays["p50"],
        delays["p99"],
        len(acknowledged.keys() & committed.keys()),
        len(committed.keys() - acknowledged.keys()),
    )


@contextlib.asynccontextmanager
async def _kafka(bootstrap_server: str | None) -> AsyncIterator[str]:
    if bootstrap_server is not None:
        yield bootstrap_server
        return
    async with ApacheKafka(performance=True) as kafka:
        yield kafka.bootstrap_servers


async def outbox(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    there = f"a cluster that was there, {options.bootstrap_server}"
    broker = there if options.bootstrap_server else f"Apache Kafka {ApacheKafka().version}"
    environment, cpu = Environment.now(loop=options.loop, broker=broker), MachineCpu()
    turns: list[Turn] = []
    with Postgresql(durable=True) as postgresql:
        async with _kafka(options.bootstrap_server) as servers:
            for round_ in range(1, options.rounds + 1):
                # Ways take turns in alternating order, so that a drift of the machine favours none.
                for way in options.on if round_ % 2 else reversed(options.on):
                    turns.append(await turn(way, round_, postgresql, servers, options))
                    done = turns[-1]
                    progress(f"round {round_}, {way}: {done.rows_per_s:,.0f} rows/s, delay {done.p50_ms:.1f} ms")
    environment = replace(environment, others=cpu.others())
    return Report(environment, options.rows, options.rate, options.seconds, options.most_rows, turns)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks outbox",
        description="Measures a relay of an outbox table beside a plain poller.",
        epilog="Exit status 0: every target was met; 1: not so; 2: wrong usage.",
    )
    parser.add_argument("--on", type=some_of(WAYS), default=list(WAYS), metavar="NAME[,...]", help=list_of(WAYS))
    parser.add_argument("--rows", type=positive, default=200_000, help="of the backlog")
    parser.add_argument("--most-rows", type=positive, default=10_000, help="in a page")
    parser.add_argument("--rate", type=positive, default=500, help="commits per second after the backlog")
    parser.add_argument("--seconds", type=positive, default=10, help="for so long")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="a cluster that is there; else one is started")
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    try:
        return command.report(outbox, parse_arguments(arguments))
    except (KafkaFailed, KafkaUnavailable, PostgresqlFailed, PostgresqlUnavailable) as error:
        print(error, file=sys.stderr)
        return 1
