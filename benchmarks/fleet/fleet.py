"""``python -m benchmarks fleet``: one producer in a cluster of a thousand brokers and a million partitions.

The producer is whole and real; brokers and network are a model in the same thread (``fleet_broker.py``), and time is
virtual: it goes on by the CPU time that the producer takes, and by what the network does. So what is measured is the
producer alone, of a cluster that fits on no machine. Each size runs in a process of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from benchmarks.fleet.cluster_map import REPLICAS
from benchmarks.fleet.events import EVENTS, WAVES
from benchmarks.fleet.point import START, Happening, Point, Size
from benchmarks.harness import command
from benchmarks.harness.arguments import numbers, positive
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.processes import output_of
from benchmarks.harness.results import restored

BROKERS = (10, 100, 1_000)
PARTITIONS = (1_000, 10_000, 100_000)
CLUSTER = 1_000_000
"""Partitions in the cluster."""

STALL_MS = 5.0
"""99.9 % of the loop's turns take the producer no longer."""
FLAT = 1.5
"""How many times more a thing may cost at the largest size than at the smallest, record by record or partition by
partition."""

FAILING = ("deletion",)
"""Events that no producer gets all records through."""


@dataclass(frozen=True)
class Report:
    """All points: each number of partitions with the most brokers, and each number of brokers with the most
    partitions."""

    environment: Environment
    points: Sequence[Point]

    @property
    def largest(self) -> Point:
        return max(self.points, key=lambda point: (point.size.brokers, point.size.partitions))

    def tables(self) -> list[str]:
        size = self.largest.size
        lines = [f"{size.brokers:,} brokers, {size.partitions:,} of {size.cluster:,} partitions in use, {size.rate:,}"]
        lines[0] += " records a second. CPU time is the producer's alone; time is virtual."
        lines += ["", "| event | | s | CPU s | beyond the load's | delay p50 | p99 | most | failed |"]
        lines += ["|---|---|---:|---:|---:|---:|---:|---:|---:|"]
        titles = {START: "all metadata, all connections, one record to each partition"}
        titles |= {event.name: event.title for event in EVENTS}
        for one in self.largest.happenings:
            beyond = "" if one.event in (START, "steady") else f"{self.beyond(self.largest, one):.2f}"
            delays = " | ".join(f"{delay:,.1f} ms" for delay in (one.p50, one.p99, one.most))
            lines.append(
                f"| `{one.event}` | {titles[one.event]} | {one.seconds:.1f} | {one.cpu:.2f} | {beyond} | {delays} | "
                f"{one.failed:,} of {one.records:,} |"
            )
        lines += [
            "",
            "| event | Produce | batches a request | Metadata | MB of it | connections made | loop's turn p99.9 |",
        ]
        lines[-1] += " longest | collector's longest run |"
        lines += ["|---|" + "---:|" * 8]
        for one in self.largest.happenings:
            produce, metadata = one.requests.get("PRODUCE", 0), one.requests.get("METADATA", 0)
            cells = [f"{produce:,}", f"{one.batches / max(produce, 1):.1f}", f"{metadata:,}", f"{one.metadata_mb:.1f}"]
            cells += [f"{one.connections:,}"]
            cells += [f"{ms:.1f} ms" for ms in (one.turn_p99_9, one.turn_max, one.longest_collection)]
            lines.append(f"| `{one.event}` | {' | '.join(cells)} |")
        return [*lines, "", *self.growth()]

    def growth(self) -> list[str]:
        """A row for each size."""
        lines = ["| brokers | partitions in use | MiB | start, CPU s | CPU a record | refresh, CPU ms | a partition |"]
        lines[0] += " restart of all, CPU s | MB of metadata | p99 |"
        lines += ["|" + "---:|" * 10]
        for point in self.points:
            rolling = point.of("rolling")
            cells = [f"{point.size.brokers:,}", f"{point.size.partitions:,}", f"{point.of('steady').rss:.0f}"]
            cells += [f"{point.of(START).cpu:.2f}", f"{self.a_record(point):.0f} µs"]
            cells += [f"{self.refresh(point) * 1e3:.0f}", f"{self.a_partition(point):.1f} µs"]
            cells += [f"{self.beyond(point, rolling):.1f}", f"{rolling.metadata_mb:,.0f}", f"{rolling.p99:,.1f} ms"]
            lines.append(f"| {' | '.join(cells)} |")
        return lines

    def a_record(self, point: Point) -> float:
        """Microseconds of CPU, of the load alone."""
        steady = point.of("steady")
        return steady.cpu / steady.records * 1e6

    def beyond(self, point: Point, one: Happening) -> float:
        """Seconds of CPU beyond those that the load takes in the same time."""
        steady = point.of("steady")
        return max(0.0, one.cpu - steady.cpu / steady.seconds * one.seconds)

    def refresh(self, point: Point) -> float:
        """Seconds of CPU."""
        return self.beyond(point, point.of("refresh"))

    def a_partition(self, point: Point) -> float:
        """Microseconds of CPU in a refresh."""
        return self.refresh(point) / point.size.partitions * 1e6

    def problems(self) -> list[str]:
        found = []
        for point in self.points:
            where = f"{point.size.brokers:,} brokers, {point.size.partitions:,} partitions"
            for one in point.happenings:
                if one.failed and one.event not in FAILING:
                    found.append(f"{where}, {one.event}: {one.failed:,} of {one.records:,} records failed")
                if one.event != START and one.turn_p99_9 > STALL_MS:  # its turns are few, and nothing is served yet
                    took = f"{one.turn_p99_9:.1f} ms; {STALL_MS:.0f} ms is the most they may"
                    found.append(f"{where}, {one.event}: 99.9 % of the loop's turns take up to {took} ({one.longest})")
        for name, cost in (("a record", self.a_record), ("a partition of a refresh", self.a_partition)):
            by_partitions = [point for point in self.points if point.size.brokers == self.largest.size.brokers]
            costs = [cost(point) for point in by_partitions]
            if costs[-1] > FLAT * min(costs):
                times = costs[-1] / min(costs)
                found.append(f"{name} costs {times:.2f} times as much with more partitions; {FLAT} is the most it may")
        return found

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())


def sizes(brokers: Sequence[int], partitions: Sequence[int], cluster: int, topic: int, rate: int) -> list[Size]:
    """All partitions with the most brokers, then the most partitions with all others."""
    most, largest = max(brokers), max(partitions)
    points = [(most, number) for number in sorted(partitions)]
    points += [(number, largest) for number in sorted(brokers, reverse=True) if number != most]
    return [Size(number, in_use, max(cluster, in_use), topic, rate) for number, in_use in points]


async def measure(size: Size) -> Point:
    """In a process of its own."""
    began = time.monotonic()
    statement = "from benchmarks.fleet.point import main; main(sys.argv[1])"
    said = await output_of(statement, json.dumps(asdict(size)))
    point: Point = restored(Point, json.loads(said))
    return dataclasses.replace(point, minutes=(time.monotonic() - began) / 60)


async def fleet(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment, cpu = Environment.now(loop="asyncio", broker="a model, in virtual time"), MachineCpu()
    began = time.monotonic()
    points = []
    for size in sizes(options.brokers, options.partitions, options.cluster, options.topic, options.rate):
        points.append(await measure(size))
        worst = max(points[-1].happenings, key=lambda one: one.turn_p99_9)
        progress(
            f"{size.brokers:,} brokers, {size.partitions:,} partitions: {points[-1].minutes:.1f} minutes, "
            f"{points[-1].of('steady').rss:.0f} MiB, turns p99.9 {worst.turn_p99_9:.1f} ms ({worst.event})"
        )
    minutes = (time.monotonic() - began) / 60
    return Report(dataclasses.replace(environment, others=cpu.others(), minutes=minutes), points)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks fleet",
        description="Measures a producer in a cluster of a thousand brokers, in virtual time.",
        epilog="Exit status 0: no record fails that need not, 99.9 % of the loop's turns take up to "
        f"{STALL_MS:.0f} ms of the producer's CPU time, and nothing grows faster than the fleet; 1: otherwise.",
    )
    parser.add_argument("--brokers", type=numbers, default=list(BROKERS), metavar="N[,...]")
    parser.add_argument("--partitions", type=numbers, default=list(PARTITIONS), metavar="N[,...]", help="in use")
    parser.add_argument("--cluster", type=positive, default=CLUSTER, metavar="N", help="partitions; %(default)s")
    parser.add_argument("--topic", type=positive, default=500, metavar="N", help="partitions of each; %(default)s")
    parser.add_argument("--rate", type=positive, default=200, metavar="N", help="records a second; %(default)s")
    command.add_json(parser)
    options = parser.parse_args(arguments)
    if min(options.brokers) < max(REPLICAS, WAVES):
        parser.error(
            f"--brokers: at least {max(REPLICAS, WAVES)}, so that no restart leaves a partition without leader"
        )
    if min(options.partitions) < 2 * options.topic or any(number % options.topic for number in options.partitions):
        parser.error("--partitions: whole topics, and at least two, as one of them is deleted")
    return options


def main(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    options.loop = "asyncio"
    return command.report(fleet, options)
