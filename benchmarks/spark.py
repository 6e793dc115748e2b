"""``python -m benchmarks spark``: the sink for Spark beside Spark's own Kafka sink.

Real Kafka, one node, and one Spark session on ``local[2]``, in which the sinks take turns. Rows are made by Spark, so
that a write is little but the sink; every producer has its own defaults. Needs PySpark 4.2, which Spark's connector is
for, and Maven, which fetches that once.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median

from aioproducer.testing.apache_kafka import ApacheKafka, KafkaUnavailable
from aioproducer.testing.kafka_libs import fetch_spark_connector
from benchmarks import alone
from benchmarks.arguments import positive
from benchmarks.environment import Environment
from benchmarks.machine_cpu import MachineCpu
from benchmarks.spark_process import EXACTLY_ONCE, SINKS, TASKS

PARTITIONS = 6
SHAPES = ((3_000_000, 100), (1_000_000, 1000))
"""Rows, and bytes of each."""

WARM_UP = 20_000
"""Rows of a first write by each sink, which is not measured: Java compiles, Spark's workers start."""

BASE = "Spark's own"
TARGETS = {"aioproducer": 1.2, EXACTLY_ONCE: 0.9}
"""Rows a second, as a multiple of those of Spark's own sink."""


@dataclass(frozen=True)
class Written:
    """One write. ``end_offsets``: the sum over the topic; markers of transactions are offsets, too."""

    sink: str
    rows: int
    size: int
    seconds: float
    end_offsets: int

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds

    def problem(self) -> str | None:
        markers = TASKS * PARTITIONS if self.sink == EXACTLY_ONCE else 0
        if self.rows <= self.end_offsets <= self.rows + markers:
            return None
        return f"{self.sink} wrote {self.rows} rows of {self.size} B, and the topic ends at {self.end_offsets}"


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    rounds: int
    written: Sequence[Written]

    def rate(self, sink: str, rows: int, size: int) -> float:
        """The median of all rounds."""
        return float(
            median(one.rows_per_s for one in self.written if (one.sink, one.rows, one.size) == (sink, rows, size))
        )

    def shapes(self) -> list[tuple[int, int]]:
        return sorted({(one.rows, one.size) for one in self.written}, key=lambda shape: shape[1])

    def problems(self) -> list[str]:
        return [problem for one in self.written if (problem := one.problem()) is not None] + list(self._too_slow())

    def _too_slow(self) -> Iterator[str]:
        for rows, size in self.shapes():
            for sink, wanted in TARGETS.items():
                ratio = self.rate(sink, rows, size) / self.rate(BASE, rows, size)
                if ratio < wanted:
                    yield f"{rows:,} rows of {size} B: {sink} is {ratio:.2f} × as fast as {BASE}, not {wanted:g}"

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"local[{TASKS}], {PARTITIONS} partitions; rows/s, medians of {self.rounds} rounds, × Spark's own.",
            "",
            f"| rows | {' | '.join(SINKS)} |",
            f"|---|{'---:|' * len(SINKS)}",
        ]
        for rows, size in self.shapes():
            base = self.rate(BASE, rows, size)
            rates = {sink: self.rate(sink, rows, size) for sink in SINKS}
            cells = " | ".join(f"{rate:,.0f} ({rate / base:.2f} ×)" for rate in rates.values())
            lines.append(f"| {rows:,} of {size} B | {cells} |")
        return lines

    def markdown(self) -> str:
        return alone.page(self.environment, self.tables(), self.problems())


class Session:
    """The process with the Spark session."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def write(self, sink: str, rows: int, size: int) -> Written:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"sink": sink, "rows": rows, "size": size}).encode() + b"\n")
        answer = await self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"Spark has ended with status {await self._process.wait()}; what it said is above")
        return Written(**json.loads(answer))


@asynccontextmanager
async def running_session(servers: str) -> AsyncIterator[Session]:
    """A Spark session; gone at the end."""
    jars = await asyncio.to_thread(fetch_spark_connector)
    pipe = asyncio.subprocess.PIPE
    with tempfile.TemporaryDirectory(prefix="aioproducer-spark-") as scratch:
        arguments = [servers, str(jars), scratch, str(PARTITIONS)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.spark_process", *arguments, stdin=pipe, stdout=pipe
        )
        try:
            yield Session(process)
        finally:
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()


async def spark(options: argparse.Namespace, told: Callable[[str], object]) -> Report:
    kafka = ApacheKafka(performance=True)
    broker = f"Apache Kafka {kafka.version}, one node on the same machine, started for this"
    environment, cpu = Environment.now(loop="asyncio", broker=broker), MachineCpu()
    shapes = [(rows // 10 if options.quick else rows, size) for rows, size in SHAPES]
    written: list[Written] = []
    async with kafka, running_session(kafka.bootstrap_servers) as session:
        for sink in SINKS:
            await session.write(sink, WARM_UP, 100)
        for round_ in range(options.rounds):
            for rows, size in shapes:
                for sink in _in_turn(round_):
                    written.append(await session.write(sink, rows, size))
                    told(f"{sink}, {rows:,} of {size} B: {written[-1].rows_per_s:,.0f} rows/s")
        environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, options.rounds, written)


def _in_turn(round_: int) -> list[str]:
    """Each sink is the first in its turn."""
    sinks = list(SINKS)
    return sinks[round_ % len(sinks) :] + sinks[: round_ % len(sinks)]


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks spark",
        description="Measures the sink for Spark beside Spark's own Kafka sink.",
        epilog=f"Exit status 0: nothing is lost, at-least-once is {TARGETS['aioproducer']:g} × as fast as Spark's own "
        f"and exactly-once {TARGETS[EXACTLY_ONCE]:g} ×; 1: it is not.",
    )
    parser.add_argument("--rounds", type=positive, default=3, metavar="N", help="%(default)s, the medians count")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    alone.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    try:
        return alone.report(spark, parse_arguments(arguments))
    except KafkaUnavailable as missing:
        print(missing, file=sys.stderr)
        return 1
