"""``python -m benchmarks linger``: the default, with which the producer decides, beside linger.ms=0 and linger.ms=5.

Tasks that each await ``send`` want short answers, a stream wants throughput, and records that arrive at a fixed rate
want both. The broker is Kafka on this machine, or the embedded one behind a line that delays every byte.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from aioproducer import KafkaProducer
from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from benchmarks.harness import command
from benchmarks.harness.arguments import numbers, positive
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.page_cache import ready_page_cache
from benchmarks.harness.statistics import Spread
from benchmarks.harness.usage import cpu_seconds_of
from benchmarks.pipelining.far_broker import TOPIC, far_broker

VALUE = bytes(100)
TASKS = (1, 10, 100, 1000)
ROUND_TRIPS_MS = (0, 1, 20, 150)
PACE = 200_000
"""Records a second that arrive at a fixed rate; only where there is no line."""

MOST_STREAMED, MOST_AWAITED = 600_000_000, 150_000_000
"""Bytes a second that are certainly not exceeded."""

SAMPLED = 20
"""One in this many records is timed."""

MORE_ROUNDS = 3
"""So many times the rounds where there is no line: client and broker then share this machine, and runs scatter."""

PARTITIONS = 6
SETTINGS: dict[str, dict[str, Any]] = {"default": {}, "linger 0": {"linger_ms": 0}, "linger 5": {"linger_ms": 5}}
STREAM, PACED = "a stream", f"{PACE:,}/s"

FEW, AS_FAST, CPU = 0.9, 0.95, 1.1
"""The targets: at least this share of linger 0's rate with up to ten tasks, at least this share of each fixed linger's
rate with more tasks and without, and at most this multiple of the broker's CPU time per record with linger 5."""


@dataclass(frozen=True)
class Work:
    """What sends: a number of tasks, or one of the names above; and over which line, 0 for none."""

    arrivals: str
    round_trip_ms: int

    @property
    def tasks(self) -> int | None:
        return int(self.arrivals.split()[0]) if "task" in self.arrivals else None

    @property
    def warm_up(self) -> float:
        return 0.3 + 5 * self.round_trip_ms / 1000

    def most_bytes(self, seconds: float) -> int:
        """That are sent in a run of so long."""
        return int((seconds + self.warm_up) * (MOST_STREAMED if self.arrivals == STREAM else MOST_AWAITED))


@dataclass(frozen=True)
class Run:
    """One run. ``p50_ms`` is from ``send`` to the answer; ``broker_us`` is the broker's CPU time per record."""

    work: Work
    setting: str
    round: int
    records_per_s: float
    p50_ms: float
    broker_us: float | None


async def measure(
    work: Work, setting: str, round_: int, seconds: float, bootstrap_servers: str, cpu: Callable[[], float | None]
) -> Run:
    done = 0
    latencies: list[float] = []
    stop = False

    def count(records: int, since: float, _: object = None) -> None:
        nonlocal done
        done += records
        latencies.append(time.perf_counter() - since)

    async with KafkaProducer(bootstrap_servers=bootstrap_servers, **SETTINGS[setting]) as producer:
        for partition in range(PARTITIONS):
            await producer.send(TOPIC, VALUE, partition=partition)

        async def one_task() -> None:
            while not stop:
                since = time.perf_counter()
                await producer.send(TOPIC, VALUE)
                count(1, since)

        async def stream() -> None:
            while not stop:
                since = time.perf_counter()
                (await producer.enqueue(TOPIC, VALUE)).add_done_callback(partial(count, 100, since))
                for _ in range(99):
                    _ = await producer.enqueue(TOPIC, VALUE)

        async def paced() -> None:
            sent, begun = 0, time.perf_counter()
            while not stop:
                since = time.perf_counter()
                due = int((since - begun) * PACE) - sent
                for number in range(due):
                    delivery = producer.send(TOPIC, VALUE)
                    if number % SAMPLED == 0:
                        delivery.add_done_callback(partial(count, min(SAMPLED, due - number), since))
                sent += due
                await asyncio.sleep(0.001)

        if work.tasks is not None:
            tasks = [asyncio.ensure_future(one_task()) for _ in range(work.tasks)]
        else:
            tasks = [asyncio.ensure_future(stream() if work.arrivals == STREAM else paced())]
        await asyncio.sleep(work.warm_up)
        latencies.clear()
        before, used, begun = done, cpu(), time.perf_counter()
        await asyncio.sleep(seconds)
        records, elapsed, used_by_then = done - before, time.perf_counter() - begun, cpu()
        stop = True
        await asyncio.gather(*tasks)
    broker = None if used is None or used_by_then is None else (used_by_then - used) / max(records, 1) * 1e6
    return Run(work, setting, round_, records / elapsed, median(latencies) * 1000 if latencies else 0.0, broker)


@dataclass(frozen=True)
class Report:
    """All rounds; ratios are to runs of the same round."""

    environment: Environment
    works: Sequence[Work]
    rounds: int
    seconds: float
    runs: Sequence[Run]

    def of(self, work: Work, setting: str) -> list[Run]:
        return [run for run in self.runs if (run.work, run.setting) == (work, setting)]

    def ratio(self, work: Work, setting: str, figure: str = "records_per_s") -> Spread:
        pairs = zip(self.of(work, "default"), self.of(work, setting), strict=True)
        return Spread.of([getattr(ours, figure) / getattr(other, figure) for ours, other in pairs])

    def verdicts(self) -> Iterator[command.Verdict]:
        for work in self.works:
            where = f"{work.arrivals}, {_line(work)}"
            few = work.tasks is not None and work.tasks <= 10
            least = FEW if few else AS_FAST
            for setting in ("linger 0",) if few else ("linger 0", "linger 5"):
                ratio = self.ratio(work, setting)
                yield command.Verdict(
                    f"{where}: at least {least:g} of {setting}'s rate", f"{ratio}", ratio.median >= least
                )
            if work.tasks is None and all(run.broker_us for run in self.runs if run.work == work):
                ratio = self.ratio(work, "linger 5", "broker_us")
                yield command.Verdict(
                    f"{where}: at most {CPU:g} of the broker's CPU time with linger 5", f"{ratio}", ratio.median <= CPU
                )

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"Records of {len(VALUE)} B to {PARTITIONS} partitions; medians of {self.rounds} rounds of "
            f"{self.seconds:g} s, {self.rounds * MORE_ROUNDS} without a line. Records/s, p50 in ms, and the broker's "
            "CPU time per record in µs.",
            "",
            f"| what sends | round trip | {' | '.join(SETTINGS)} |",
            "|:---|---:|" + "---:|" * len(SETTINGS),
        ]
        for work in self.works:
            cells = " | ".join(self._cell(work, setting) for setting in SETTINGS)
            lines.append(f"| {work.arrivals} | {_line(work)} | {cells} |")
        return [*lines, "", *command.Verdict.table(list(self.verdicts()))]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())

    def _cell(self, work: Work, setting: str) -> str:
        runs = self.of(work, setting)
        cell = f"{median(run.records_per_s for run in runs):,.0f}, {median(run.p50_ms for run in runs):.2f}"
        broker = [run.broker_us for run in runs if run.broker_us is not None]
        return f"{cell}, {median(broker):.2f}" if broker else cell


def _line(work: Work) -> str:
    return f"{work.round_trip_ms} ms" if work.round_trip_ms else "none"


@contextlib.asynccontextmanager
async def _broker(round_trip_ms: int) -> AsyncIterator[tuple[str, Callable[[], float | None]]]:
    """Its address, and how much CPU time it has used, or None."""
    if round_trip_ms:
        async with far_broker(round_trip_ms, window=5, partitions=PARTITIONS) as broker:
            yield broker.bootstrap_servers, lambda: None
        return
    async with ApacheKafka(performance=True) as kafka:
        async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            await admin.create_topic(NewTopic(TOPIC, PARTITIONS, 1))
        yield kafka.bootstrap_servers, partial(cpu_seconds_of, kafka.pid(1))


async def linger(options: argparse.Namespace, say: Callable[[str], object]) -> Report:
    environment = Environment.now(loop=options.loop, broker="Apache Kafka, or embedded behind a slow line")
    cpu = MachineCpu()
    arrivals = [f"{number} task{'' if number == 1 else 's'}" for number in options.tasks]
    works: list[Work] = []
    runs: list[Run] = []
    for round_trip in options.round_trips_ms:
        here = [Work(name, round_trip) for name in (*arrivals, STREAM, *([] if round_trip else [PACED]))]
        works += here
        rounds = options.rounds * (1 if round_trip else MORE_ROUNDS)
        async with _broker(round_trip) as (bootstrap_servers, broker_cpu):
            for work in here:
                for round_ in range(rounds + 1):
                    # In turn from either end: what comes first finds another broker than what comes last.
                    for setting in SETTINGS if round_ % 2 else reversed(SETTINGS):
                        await ready_page_cache(work.most_bytes(options.seconds))
                        run = await measure(work, setting, round_, options.seconds, bootstrap_servers, broker_cpu)
                        say(f"{run}")
                        if round_:  # the first is to warm everything up
                            runs.append(run)
    environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, works, options.rounds, options.seconds, runs)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks linger",
        description="Measures the default beside linger.ms=0 and 5: tasks that await, streams, and a fixed rate.",
        epilog="Exit status 0: the default meets all targets; 1: it does not.",
    )
    parser.add_argument(
        "--round-trips-ms",
        type=lambda text: [int(one) for one in text.split(",")],
        default=list(ROUND_TRIPS_MS),
        metavar="MS[,...]",
        help="of the lines; 0 for Kafka on this machine without one",
    )
    parser.add_argument("--tasks", type=numbers, default=list(TASKS), metavar="N[,...]")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each run (%(default)s)")
    parser.add_argument(
        "--rounds",
        type=positive,
        default=4,
        metavar="N",
        help="of which the medians count (%(default)s); without a line three times as many",
    )
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    return command.report(linger, parse_arguments(arguments))
