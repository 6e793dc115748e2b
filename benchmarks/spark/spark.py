"""``python -m benchmarks spark``: the sink for Spark beside Spark's own Kafka sink.

Real Kafka, one node, and one Spark session on ``local[2]``, in which the sinks take turns. Rows are made by Spark, so
that a write is little but the sink. Every producer has its own defaults; Spark's own sink runs once more with batches
of 64 KiB that wait for 5 ms. A write of many small tasks runs beside a function that does nothing. Needs PySpark 4.2,
which Spark's connector is for, and Maven, which fetches that once.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from aioproducer.testing.kafka.apache_kafka import ApacheKafka, KafkaUnavailable
from aioproducer.testing.kafka.kafka_libs import fetch_spark_connector
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.page_cache import ready_page_cache
from benchmarks.spark.spark_process import AT_LEAST_ONCE, CORES, EMPTY, EXACTLY_ONCE, OWN, SINKS, TUNED

PARTITIONS = 6


class Shape(NamedTuple):
    """So many rows, of so many bytes, in so many tasks."""

    rows: int
    size: int
    tasks: int

    def __str__(self) -> str:
        return f"{self.rows:,} rows of {self.size} B, {self.tasks} tasks"


LARGE = (Shape(3_000_000, 100, CORES), Shape(1_000_000, 1000, CORES))
SMALL = Shape(2000, 100, 200)
"""Tasks so small that what counts is their beginning and their end."""

WARM_UP = Shape(20_000, 100, CORES)
"""A first write by each sink, which is not measured: Java compiles, Spark's workers start."""

IN_SMALL = (EMPTY, AT_LEAST_ONCE, EXACTLY_ONCE)
"""What runs small tasks."""

TARGETS = ((AT_LEAST_ONCE, OWN, 1.2), (AT_LEAST_ONCE, TUNED, 1.1), (EXACTLY_ONCE, TUNED, 1.0))
"""Rows a second of the first, at least as a multiple of the second's; with large tasks."""

SMALL_AT_MOST = 1.5
"""Seconds of small tasks, as a multiple of those of an empty function."""


@dataclass(frozen=True)
class Written:
    """One write. ``end_offsets``: the sum over the topic; markers of transactions are offsets, too."""

    sink: str
    rows: int
    size: int
    tasks: int
    seconds: float
    cpu_seconds: float
    """Of Spark's processes, the JVM and its Python workers; not Kafka's."""
    end_offsets: int

    @property
    def shape(self) -> Shape:
        return Shape(self.rows, self.size, self.tasks)

    def problem(self) -> str | None:
        rows = 0 if self.sink == EMPTY else self.rows
        markers = self.tasks * PARTITIONS if self.sink == EXACTLY_ONCE else 0
        if rows <= self.end_offsets <= rows + markers:
            return None
        return f"{self.sink} wrote {self.shape}, and the topic ends at {self.end_offsets}"


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    rounds: int
    written: Sequence[Written]

    def seconds(self, sink: str, shape: Shape) -> float:
        """The median of all rounds."""
        return float(median(one.seconds for one in self._of(sink, shape)))

    def cpu_seconds(self, sink: str, shape: Shape) -> float:
        """The median of all rounds."""
        return float(median(one.cpu_seconds for one in self._of(sink, shape)))

    def shapes(self, sinks: Iterable[str]) -> list[Shape]:
        """The shapes that all of these have written."""
        found = [{one.shape for one in self.written if one.sink == sink} for sink in sinks]
        return sorted(set.intersection(*found), key=lambda shape: shape.size)

    def verdicts(self) -> list[Verdict]:
        verdicts = []
        for sink, base, wanted in TARGETS:
            for shape in self.shapes(SINKS):
                ratio = self.seconds(base, shape) / self.seconds(sink, shape)
                target = f"{sink} ÷ {base}, rows/s, {shape}: ≥ {wanted:g}"
                verdicts.append(Verdict(target, f"{ratio:.2f}", ratio >= wanted))
        for shape in self.shapes(IN_SMALL):
            ratio = self.seconds(AT_LEAST_ONCE, shape) / self.seconds(EMPTY, shape)
            target = f"{AT_LEAST_ONCE} ÷ {EMPTY}, seconds, {shape}: ≤ {SMALL_AT_MOST:g}"
            verdicts.append(Verdict(target, f"{ratio:.2f}", ratio <= SMALL_AT_MOST))
        return verdicts

    def problems(self) -> list[str]:
        lost = [problem for one in self.written if (problem := one.problem()) is not None]
        return lost + [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [f"local[{CORES}], {PARTITIONS} partitions; medians of {self.rounds} rounds; CPU time is Spark's."]
        for shape in self.shapes(SINKS):
            lines += ["", f"| {shape} | rows/s | × {OWN} | × tuned | CPU µs a row |", "|---|---:|---:|---:|---:|"]
            for sink in SINKS:
                seconds = self.seconds(sink, shape)
                ratios = [f"{self.seconds(base, shape) / seconds:.2f}" for base in (OWN, TUNED)]
                cpu = self.cpu_seconds(sink, shape) / shape.rows * 1e6
                lines.append(f"| {sink} | {shape.rows / seconds:,.0f} | {' | '.join(ratios)} | {cpu:.2f} |")
        for shape in self.shapes(IN_SMALL):
            # Without their CPU time: that of workers that end in between is missing.
            lines += ["", f"| {shape} | seconds | × {EMPTY} |", "|---|---:|---:|"]
            for sink in IN_SMALL:
                seconds = self.seconds(sink, shape)
                lines.append(f"| {sink} | {seconds:.2f} | {seconds / self.seconds(EMPTY, shape):.2f} |")
        return [*lines, "", *Verdict.table(self.verdicts())]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())

    def _of(self, sink: str, shape: Shape) -> list[Written]:
        return [one for one in self.written if (one.sink, one.shape) == (sink, shape)]


class Session:
    """The process with the Spark session."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def write(self, sink: str, shape: Shape) -> Written:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"sink": sink, **shape._asdict()}).encode() + b"\n")
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
            sys.executable, "-m", "benchmarks.spark.spark_process", *arguments, stdin=pipe, stdout=pipe
        )
        try:
            yield Session(process)
        finally:
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()


async def spark(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    kafka = ApacheKafka(performance=True)
    broker = f"Apache Kafka {kafka.version}, one node on the same machine, started for this"
    environment, cpu = Environment.now(loop="asyncio", broker=broker), MachineCpu()
    large = [shape._replace(rows=shape.rows // 10) if options.quick else shape for shape in LARGE]
    work = [*((shape, tuple(SINKS)) for shape in large), (SMALL, IN_SMALL)]
    written: list[Written] = []
    async with kafka, running_session(kafka.bootstrap_servers) as session:
        for sink in (*SINKS, EMPTY):
            await session.write(sink, WARM_UP)
        for round_ in range(options.rounds):
            for shape, sinks in work:
                for sink in _in_turn(sinks, round_):
                    await ready_page_cache(shape.rows * shape.size)
                    written.append(await session.write(sink, shape))
                    progress(f"{sink}, {shape}: {written[-1].seconds:.2f} s")
        environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, options.rounds, written)


def _in_turn(sinks: Sequence[str], round_: int) -> list[str]:
    """Each sink is the first in its turn."""
    return [*sinks[round_ % len(sinks) :], *sinks[: round_ % len(sinks)]]


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks spark",
        description="Measures the sink for Spark beside Spark's own Kafka sink.",
        epilog="Exit status 0: nothing is lost, and all targets are met; 1: not so.",
    )
    parser.add_argument("--rounds", type=positive, default=3, metavar="N", help="%(default)s, the medians count")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows of large tasks")
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    try:
        return command.report(spark, parse_arguments(arguments))
    except KafkaUnavailable as missing:
        print(missing, file=sys.stderr)
        return 1
