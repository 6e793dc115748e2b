"""``python -m benchmarks scale``: what a record and a wake of the Sender cost, beside how many partitions there are.

The whole producer on real sockets, against a broker in another process that keeps nothing; CPU time is this process's
alone. The loads are made such that nothing but the number of partitions differs: batches have as many records, requests
as many batches, whether there are 10 partitions or 100,000.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from aioproducer import KafkaProducer
from benchmarks.harness import command
from benchmarks.harness.arguments import numbers, positive
from benchmarks.harness.discarding_broker import REACHED, UNREACHED, discarding_broker
from benchmarks.harness.environment import Environment
from benchmarks.harness.heartbeat import Heartbeat
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.stress.producer_parts import parts_of

PARTITIONS = (1, 10, 100, 1_000, 10_000, 100_000)
FLAT = 1.5
"""How many times more a record may cost with more partitions."""

VALUE = bytes(100)
ACTIVE = 10
RUN = 10
"""Records sent to a partition before the next has its turn, where all have one: they fill a batch."""
BATCH = 16384
"""batch.size and batch.max.size: if batches grew while they wait, those of few partitions would be larger."""
SMALL_BATCH = 61 + RUN * (len(VALUE) + 21)
"""batch.size that is full after a run: overhead, and what a record may take at most."""


@dataclass(frozen=True)
class Load:
    """Sends records to a topic with many partitions; all are delivered when it returns."""

    name: str
    title: str
    run: Callable[[KafkaProducer, int, int], Awaitable[None]]
    share: int = 1
    """One in this many records is enough: one at a time takes longer."""
    batch_size: int = BATCH
    config: tuple[tuple[str, Any], ...] = ()


async def sticky(producer: KafkaProducer, partitions: int, records: int) -> None:
    await _stream(producer, records, itertools.repeat(None))


async def few(producer: KafkaProducer, partitions: int, records: int) -> None:
    active = [number * partitions // ACTIVE for number in range(min(ACTIVE, partitions))]
    await _stream(producer, records, itertools.cycle(active))


async def every(producer: KafkaProducer, partitions: int, records: int) -> None:
    # In strides, so that fewer records than would reach all of them are spread over all.
    stride = max(1, partitions * RUN // records) | 1
    turns = itertools.count(0, stride)
    await _stream(producer, records, (turn % partitions for turn in turns for _ in range(RUN)))


async def _stream(producer: KafkaProducer, records: int, places: Iterator[int | None]) -> None:
    for place in itertools.islice(places, records):
        _ = await producer.enqueue(REACHED, VALUE, partition=place)
    await producer.flush()


async def one_at_a_time(producer: KafkaProducer, partitions: int, records: int) -> None:
    for number in range(records):
        await producer.send(REACHED, VALUE, partition=number % partitions)


BACKLOG = Load(
    "backlog",
    "one at a time, each awaited, while another broker hangs and each of its partitions, as many, has a batch waiting",
    one_at_a_time,
    share=20,
    batch_size=SMALL_BATCH,
    config=(("linger_ms", 0), ("buffer_memory", 1 << 28)),
)

LOADS = (
    Load("sticky", "no key, the partitioner's choice", sticky),
    Load("few", f"{ACTIVE} of the partitions", few),
    Load("every", f"all partitions in turn, {RUN} records a batch", every, batch_size=SMALL_BATCH),
    Load("wake", "one at a time, each awaited", one_at_a_time, share=20, config=(("linger_ms", 0),)),
    BACKLOG,
)


@dataclass(frozen=True)
class Figures:
    """One load with a number of partitions, in one round: microseconds of CPU a record, and the longest stall."""

    load: str
    partitions: int
    round: int
    cpu_us: float
    stall_ms: float


@dataclass(frozen=True)
class Refresh:
    """The metadata of all partitions taken in once more: CPU, and the loop's longest stall meanwhile."""

    partitions: int
    round: int
    cpu_ms: float
    stall_ms: float


class WrongRun(Exception):
    """Something else happened than was to be measured."""


async def measure(load: Load, partitions: int, round_: int, servers: str, records: int) -> Figures:
    config: dict[str, Any] = {"linger_ms": 5, "metadata_max_age_ms": 3_600_000, "batch_size": load.batch_size}
    config |= {"batch_max_size": load.batch_size, **dict(load.config)}
    records = max(records // load.share, 1)
    waiting = []
    producer = KafkaProducer(bootstrap_servers=servers, **config)
    await producer.start()
    try:
        await producer.partitions_for(REACHED)
        if load is BACKLOG:
            waiting = [await producer.enqueue(UNREACHED, VALUE, partition=number) for number in range(partitions)]
        await load.run(producer, partitions, max(records // 10, 1))
        gc.collect()
        async with Heartbeat() as heart:
            cpu = time.process_time()
            await load.run(producer, partitions, records)
            cpu = time.process_time() - cpu
        if failed := producer.metrics()["record-error-total"]:
            raise WrongRun(f"{load.name}, {partitions} partitions: {failed:.0f} records failed")
        if any(delivery.done() for delivery in waiting):
            raise WrongRun(f"{load.name}, {partitions} partitions: the backlog did not stay")
    finally:
        await producer.close(0)
    return Figures(load.name, partitions, round_, cpu / records * 1e6, heart.stall * 1e3)


async def refresh(partitions: int, round_: int, servers: str) -> Refresh:
    async with KafkaProducer(bootstrap_servers=servers, metadata_max_age_ms=3_600_000) as producer:
        await producer.partitions_for(REACHED)
        client = parts_of(producer).client
        known = client.metadata.version
        gc.collect()
        async with Heartbeat() as heart:
            cpu = time.process_time()
            client.request_update()
            while client.metadata.version == known:
                await client.changes.next()
            cpu = time.process_time() - cpu
    return Refresh(partitions, round_, cpu * 1e3, heart.stall * 1e3)


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    partitions: Sequence[int]
    rounds: int
    figures: Sequence[Figures]
    refreshes: Sequence[Refresh]

    def cpu(self, load: str, partitions: int) -> float:
        return median(f.cpu_us for f in self.figures if (f.load, f.partitions) == (load, partitions))

    def growth(self, load: str) -> float:
        """How many times dearer a record becomes at most from some number of partitions to a larger one."""
        costs = [self.cpu(load, partitions) for partitions in sorted(self.partitions)]
        return max(later / min(costs[: number + 1]) for number, later in enumerate(costs))

    def verdicts(self) -> list[command.Verdict]:
        growth = {load.name: self.growth(load.name) for load in LOADS}
        return [
            command.Verdict(
                f"`{name}`: with more partitions a record costs ≤ {FLAT} ×", f"{times:.2f} ×", times <= FLAT
            )
            for name, times in growth.items()
        ]

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [f"CPU microseconds a record, and the loop's longest stall; medians of {self.rounds} rounds.", ""]
        lines += [f"- `{load.name}`: {load.title}" for load in LOADS]
        lines += ["", "| partitions | " + " | ".join(load.name for load in LOADS) + " | metadata refresh |"]
        lines += ["|---:|" + "---:|" * (len(LOADS) + 1)]
        for partitions in self.partitions:
            cells = [f"{self.cpu(load.name, partitions):.2f} ({self._stall(load.name, partitions)})" for load in LOADS]
            lines.append(f"| {partitions:,} | " + " | ".join(cells) + f" | {self._refresh(partitions)} |")
        return [*lines, "", *command.Verdict.table(self.verdicts())]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())

    def _stall(self, load: str, partitions: int) -> str:
        worst = median(f.stall_ms for f in self.figures if (f.load, f.partitions) == (load, partitions))
        return f"{worst:.0f} ms"

    def _refresh(self, partitions: int) -> str:
        done = [refresh for refresh in self.refreshes if refresh.partitions == partitions]
        return f"{median(r.cpu_ms for r in done):.1f} ms ({median(r.stall_ms for r in done):.0f} ms)"


async def scale(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment, cpu = Environment.now(loop=options.loop, broker="keeps nothing, in another process"), MachineCpu()
    figures: list[Figures] = []
    refreshes: list[Refresh] = []
    for round_ in range(1, options.rounds + 1):
        for partitions in options.partitions:
            async with discarding_broker(partitions) as servers:
                figures += [await measure(load, partitions, round_, servers, options.records) for load in LOADS]
                refreshes.append(await refresh(partitions, round_, servers))
            progress(
                f"round {round_}, {partitions:,} partitions: "
                + ", ".join(f"{f.load} {f.cpu_us:.2f} µs" for f in figures[-len(LOADS) :])
                + f", refresh {refreshes[-1].cpu_ms:.1f} ms"
            )
    return Report(
        dataclasses.replace(environment, others=cpu.others()), options.partitions, options.rounds, figures, refreshes
    )


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks scale",
        description="Measures what a record costs beside 1 to 100,000 partitions.",
        epilog=f"Exit status 0: with more partitions nothing costs more than {FLAT} times as much; 1: something does.",
    )
    parser.add_argument("--partitions", type=numbers, default=list(PARTITIONS), metavar="N[,...]")
    parser.add_argument("--records", type=positive, default=200_000, metavar="N", help="%(default)s a run")
    parser.add_argument(
        "--rounds", type=positive, default=3, metavar="N", help="%(default)s, of which the medians count"
    )
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    return command.report(scale, parse_arguments(arguments))
