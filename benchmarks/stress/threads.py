"""``python -m benchmarks threads``: how many records more threads send, each with its own event loop and producer.

The broker is in another process and keeps nothing. The threads begin together, when each has warmed up with a tenth of
its records; what counts is the time until all records of all threads are delivered. With a GIL, one thread runs at a
time; a free-threaded Python has none, unless an extension module that it imports switches the GIL on.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median

from aioproducer import KafkaProducer
from benchmarks.harness import command
from benchmarks.harness.arguments import numbers, positive
from benchmarks.harness.discarding_broker import REACHED, discarding_broker
from benchmarks.harness.environment import Environment, free_threaded, gil_enabled
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.runtime import loop_factory
from benchmarks.harness.statistics import Spread, ratios

THREADS = (1, 2)
PARTITIONS = 6
VALUE = bytes(100)
BATCH_SIZE = 256 * 1024
"""Large, so that the broker, which uses a core as well, has little to do for a record."""
MEETING_SECONDS = 60
"""Within which all threads are warm, or something is wrong."""


class WrongRun(Exception):
    """Something else happened than was to be measured."""


@dataclass(frozen=True)
class Run:
    """So many threads in one round: the records of them all in a second, and the cores that this process kept busy."""

    threads: int
    round: int
    records_per_s: float
    cores: float

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU a record: threads that hinder each other need more, on a busy machine, too."""
        return self.cores / self.records_per_s * 1e6


@dataclass(frozen=True)
class Report:
    """All rounds. ``gil`` is whether the GIL was on when they were over."""

    environment: Environment
    threads: Sequence[int]
    rounds: int
    free_threaded: bool
    gil: bool
    runs: Sequence[Run]

    def ratio(self, threads: int) -> Spread | None:
        """How many times the records of the fewest threads so many threads send."""
        return ratios(self._rates(threads), self._rates(min(self.threads)))

    def problems(self) -> list[str]:
        if self.free_threaded and self.gil:
            return ["this Python is free-threaded, but its GIL is on: an extension module or PYTHON_GIL switched it on"]
        return []

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        fewest = min(self.threads)
        lines = [
            f"One event loop and one producer in each thread, the GIL {'on' if self.gil else 'off'}; rounds: "
            f"{self.rounds}, medians of them. Ratios are of the same round (least–most).",
            "",
            f"| threads | records/s | ÷ {fewest} thread{'s' * (fewest > 1)} | cores busy | CPU µs a record |",
            "|---:|---:|---:|---:|---:|",
        ]
        for threads in self.threads:
            rate = median(self._rates(threads).values())
            runs = [run for run in self.runs if run.threads == threads]
            cores, cpu_us = median(run.cores for run in runs), median(run.cpu_us for run in runs)
            lines.append(f"| {threads} | {rate:,.0f} | {self.ratio(threads)} | {cores:.2f} | {cpu_us:.2f} |")
        return lines

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())

    def _rates(self, threads: int) -> dict[int, float]:
        return {run.round: run.records_per_s for run in self.runs if run.threads == threads}


async def stream(producer: KafkaProducer, records: int) -> None:
    for _ in range(records):
        _ = await producer.enqueue(REACHED, VALUE)
    await producer.flush()


@dataclass(frozen=True, order=True)
class Moment:
    """On the clocks of ``time.perf_counter`` and ``time.process_time``."""

    time: float
    cpu: float

    @classmethod
    def now(cls) -> Moment:
        return cls(time.perf_counter(), time.process_time())


async def send_all(servers: str, records: int, start: threading.Barrier) -> Moment:
    """In one thread; returns when its last record was delivered."""
    async with KafkaProducer(bootstrap_servers=servers, linger_ms=5, batch_size=BATCH_SIZE) as producer:
        await stream(producer, max(records // 10, 1))
        start.wait(MEETING_SECONDS)  # this thread's loop has nothing else to do
        await stream(producer, records)
        end = Moment.now()
        if failed := producer.metrics()["record-error-total"]:
            raise WrongRun(f"{failed:.0f} records failed")
    return end


def measure(threads: int, round_: int, servers: str, records: int, loop: str) -> Run:
    began: list[Moment] = []
    start = threading.Barrier(threads, lambda: began.append(Moment.now()))

    def run() -> Moment:
        try:
            with asyncio.Runner(loop_factory=loop_factory(loop)) as runner:
                return runner.run(send_all(servers, records, start))
        except BaseException:
            start.abort()  # or the others would wait for this one
            raise

    with ThreadPoolExecutor(threads) as pool:
        sending = [pool.submit(run) for _ in range(threads)]
    problems = [problem for one in sending if (problem := one.exception()) is not None]
    if problems:
        raise next((one for one in problems if not isinstance(one, threading.BrokenBarrierError)), problems[0])
    end = max(one.result() for one in sending)
    seconds = end.time - began[0].time
    return Run(threads, round_, threads * records / seconds, (end.cpu - began[0].cpu) / seconds)


async def threads(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment, cpu = Environment.now(loop=options.loop, broker="keeps nothing, in another process"), MachineCpu()
    runs: list[Run] = []
    async with discarding_broker(PARTITIONS) as servers:
        for round_ in range(1, options.rounds + 1):
            for count in options.threads:
                runs.append(await asyncio.to_thread(measure, count, round_, servers, options.records, options.loop))
                progress(f"round {round_}, {count} threads: {runs[-1].records_per_s:,.0f} records/s")
    environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, options.threads, options.rounds, free_threaded(), gil_enabled(), runs)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks threads",
        description="Measures how many records more threads send, each with its own event loop and producer.",
        epilog="Exit status 1: the Python is free-threaded, but its GIL is on; 0: otherwise.",
    )
    parser.add_argument("--threads", type=numbers, default=list(THREADS), metavar="N[,...]", help="1,2")
    parser.add_argument("--records", type=positive, default=200_000, metavar="N", help="%(default)s a thread")
    parser.add_argument(
        "--rounds", type=positive, default=5, metavar="N", help="%(default)s, of which the medians count"
    )
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    return command.report(threads, parse_arguments(arguments))
