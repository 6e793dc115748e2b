"""``python -m benchmarks units``: concurrent requests to a FastAPI service, each an atomic write to two topics.

The same service takes turns on each way to write them (``unit_clients.py``): as a unit, in a transaction of its own
behind a lock, and without transactions. HTTP clients send the next request as soon as the last one is answered.
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
from benchmarks.harness.arguments import list_of, some_of
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


@dataclass(frozen=True)
class Turn:
    """One way's turn. ``commit_ms`` is the mean time of a commit under this load, and ``together`` the units in one;
    None without units."""

    run: Run
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
            share = Spread.of(
                [
                    turn.run.p99_ms / (2 * turn.commit_ms + window)
                    for turn in self.turns
                    if turn.run.client == way and turn.commit_ms
                ]
            )
            yield Verdict(f"{way}: p99 ÷ (2 × a commit's time + window) ≤ 1", str(share), share.median <= 1)

    def problems(self) -> list[str]:
        runs = [turn.run for turn in self.turns]
        found = [f"{run.client}, round {run.round}: {problem}" for run in runs for problem in run.problems]
        return found + [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def markdown(self) -> str:
        lines = [f"{self.clients:,} clients at a time, {self.seconds} s a run; medians.", ""]
        lines += ["| requests as | requests/s | p50 | p99 | CPU a request | a commit | units in it |"]
        lines += ["|---|---:|---:|---:|---:|---:|---:|"]
        for way in dict.fromkeys(turn.run.client for turn in self.turns):
            mine = [turn for turn in self.turns if turn.run.client == way]
            speed, p50, p99, cpu = (
                median(getattr(turn.run, name) for turn in mine)
                for name in ("requests_per_s", "p50_ms", "p99_ms", "cpu_us")
            )
            commits = [(turn.commit_ms, turn.together) for turn in mine if turn.commit_ms and turn.together]
            of_commits = (
                f"{median(one for one, _ in commits):.0f} ms | {median(one for _, one in commits):.0f}"
                if commits
                else "|"
            )
            lines.append(f"| {way} | {speed:,.0f} | {p50:.0f} ms | {p99:.0f} ms | {cpu:.0f} µs | {of_commits} |")
        lines += ["", *Verdict.table(list(self.verdicts()))]
        return command.page(self.environment, lines, self.problems())

    def _by_round(self, way: str) -> dict[int, float]:
        return {turn.run.round: turn.run.requests_per_s for turn in self.turns if turn.run.client == way}


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


async def turn(way: str, round_: int, servers: str, clients: int, seconds: float) -> Turn:
    """One way, once."""
    found: dict[str, float] = {}

    async def look(port: int) -> None:
        found.update(await figures_of(port))

    run = await measure((1, "default"), way, round_, servers, clients, seconds, look=look, patience=PATIENCE)
    return Turn(run, found.get("unit-commit-time-avg"), found.get("units-per-commit-avg"))


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
                turns.append(await turn(way, round_, servers, options.clients, options.seconds))
                progress(f"round {round_}, {way}: {turns[-1].run.requests_per_s:,.0f} requests/s")
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
    add_options(parser)
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    try:
        return command.report(units, parse_arguments(arguments))
    except (KafkaFailed, KafkaUnavailable, ServiceFailed) as error:
        print(error, file=sys.stderr)
        return 1
