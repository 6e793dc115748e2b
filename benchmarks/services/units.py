"""``python -m benchmarks units``: concurrent requests to a FastAPI service, each an atomic write to two topics.

The same service takes turns on each way to write them (``unit_clients.py``): as a unit, in a transaction of its own
behind a lock, and without transactions. At full load HTTP clients send the next request as soon as the last one is
answered, so all of them always wait, and a request takes as long as the service needs for one of each client. So the
delay that units add is measured at a fixed rate, too, which leaves the service time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.testing.kafka.apache_kafka import ApacheKafka, KafkaFailed, KafkaUnavailable
from benchmarks.harness import command
from benchmarks.harness.arguments import list_of, positive, some_of
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.statistics import Spread, ratios
from benchmarks.services.clients import TOPIC
from benchmarks.services.http_load import HOST
from benchmarks.services.process import ServiceFailed
from benchmarks.services.speed import Run, add_options, measure
from benchmarks.services.unit_clients import LOCK, PLAIN, SECOND_TOPIC, UNIT_CLIENTS, WINDOWS

PARTITIONS = 6
TIMES_LOCK = 20.0
"""Units: times the requests per second of a transaction for each request."""
PATIENCE = 120.0
"""Seconds for the first answer to each client: behind a lock they come one after the other."""
OF_PLAIN = 0.7
"""Units: of the requests per second without transactions."""
RATE = 1000
"""Requests per second where the delay is measured."""


@dataclass(frozen=True)
class Turn:
    """One way's turn. ``rate`` is that of the requests, None for as many as there can be. ``commit_ms`` is the mean
    time of a commit under this load, and ``together`` the units in one; None without units."""

    run: Run
    rate: int | None
    commit_ms: float | None = None
    together: float | None = None


@dataclass(frozen=True)
class Report:
    """All turns; ratios are of the same round."""

    environment: Environment
    clients: int
    seconds: int
    turns: Sequence[Turn]

    def verdicts(self) -> Iterator[Verdict]:
        for way, window in WINDOWS.items():
            speed = self._by_round(way)
            if not speed:
                continue
            for other, target, words in (
                (LOCK, TIMES_LOCK, "a transaction for each request"),
                (PLAIN, OF_PLAIN, "no transactions"),
            ):
                ratio = ratios(speed, self._by_round(other))
                if ratio is not None:
                    yield Verdict(
                        f"{way}: requests/s ÷ those with {words} ≥ {target:g}", str(ratio), ratio.median >= target
                    )
            shares = [
                turn.run.p99_ms / (2 * turn.commit_ms + window)
                for turn in self.turns
                if turn.run.client == way and turn.commit_ms and turn.rate
            ]
            if shares:
                share = Spread.of(shares)
                yield Verdict(f"{way}: p99 ÷ (2 × a commit's time + window) ≤ 1", str(share), share.median <= 1)

    def problems(self) -> list[str]:
        runs = [turn.run for turn in self.turns]
        found = [f"{run.client}, round {run.round}: {problem}" for run in runs for problem in run.problems]
        return found + [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [f"{self.clients:,} clients at a time, {self.seconds} s a run; medians.", ""]
        lines += ["| requests as | load | requests/s | p50 | p99 | CPU a request | a commit | units in it |"]
        lines += ["|---|---|---:|---:|---:|---:|---:|---:|"]
        for rate, way in dict.fromkeys((turn.rate, turn.run.client) for turn in self.turns):
            mine = [turn for turn in self.turns if (turn.rate, turn.run.client) == (rate, way)]
            load = f"{rate:,}/s" if rate else "full"
            speed, p50, p99, cpu = (
                median(getattr(turn.run, name) for turn in mine)
                for name in ("requests_per_s", "p50_ms", "p99_ms", "cpu_us")
            )
            commits = [(turn.commit_ms, turn.together) for turn in mine if turn.commit_ms and turn.together]
            of_commits = (
                f"{median(one for one, _ in commits):.1f} ms | {median(one for _, one in commits):.0f}"
                if commits
                else "|"
            )
            measured = f"{speed:,.0f} | {p50:.1f} ms | {p99:.1f} ms | {cpu:.0f} µs"
            lines.append(f"| {way} | {load} | {measured} | {of_commits} |")
        return [*lines, "", *Verdict.table(list(self.verdicts()))]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())

    def _by_round(self, way: str) -> dict[int, float]:
        full = [turn.run for turn in self.turns if turn.rate is None]
        return {run.round: run.requests_per_s for run in full if run.client == way}


async def figures_of(port: int) -> dict[str, float]:
    """What the service answers to GET /figures."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(f"GET /figures HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    found: dict[str, float] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


async def turn(way: str, round_: int, servers: str, clients: int, seconds: float, rate: int | None) -> Turn:
    """One way, once."""
    found: dict[str, float] = {}

    async def look(port: int) -> None:
        found.update(await figures_of(port))

    kind = (1, "default")
    run = await measure(kind, way, round_, servers, clients, seconds, look=look, patience=PATIENCE, rate=rate)
    return Turn(run, rate, found.get("unit-commit-time-avg"), found.get("units-per-commit-avg"))


@contextlib.asynccontextmanager
async def _broker(bootstrap_server: str | None) -> AsyncIterator[str]:
    if bootstrap_server is not None:
        yield bootstrap_server
        return
    async with ApacheKafka(performance=True) as kafka:
        async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            for topic in (TOPIC, SECOND_TOPIC):
                await admin.create_topic(NewTopic(topic, PARTITIONS))
        yield kafka.bootstrap_servers


async def units(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    there = f"a cluster that was there, {options.bootstrap_server}"
    broker = there if options.bootstrap_server else f"Apache Kafka {ApacheKafka().version}"
    environment, cpu = Environment.now(loop=options.loop, broker=broker), MachineCpu()
    turns: list[Turn] = []
    async with _broker(options.bootstrap_server) as servers:
        for round_ in range(1, options.rounds + 1):
            # Ways take turns in alternating order, so that a drift of the machine favours none.
            for way in options.on if round_ % 2 else reversed(options.on):
                for rate in (None, options.rate) if way != LOCK else (None,):
                    turns.append(await turn(way, round_, servers, options.clients, options.seconds, rate))
                    run = turns[-1].run
                    progress(f"round {round_}, {way}: {run.requests_per_s:,.0f} requests/s, p99 {run.p99_ms:.1f} ms")
    return Report(replace(environment, others=cpu.others()), options.clients, options.seconds, turns)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks units",
        description="Measures a FastAPI service whose requests are atomic writes to two topics.",
        epilog="Exit status 0: every target was met; 1: not so; 2: wrong usage.",
    )
    parser.add_argument(
        "--on",
        type=some_of(UNIT_CLIENTS),
        default=list(UNIT_CLIENTS),
        metavar="NAME[,...]",
        help=list_of(UNIT_CLIENTS),
    )
    parser.add_argument(
        "--rate", type=positive, default=RATE, metavar="N", help="where the delay is measured (%(default)s)"
    )
    add_options(parser)
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    try:
        return command.report(units, parse_arguments(arguments))
    except (KafkaFailed, KafkaUnavailable, ServiceFailed) as error:
        print(error, file=sys.stderr)
        return 1
