"""``python -m benchmarks services``: a FastAPI service on aioproducer and on other clients, and in trouble.

First the requests per second that one process of the same service answers on each client, in turn, to clients that ask
again as soon as they are answered. Then the examples are asked while the broker restarts and while they get SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import importlib.util
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.testing.apache_kafka import ApacheKafka, KafkaFailed, KafkaUnavailable
from benchmarks import alone
from benchmarks.alone import Verdict
from benchmarks.arguments import list_of, numbers, positive, some_of
from benchmarks.environment import Environment
from benchmarks.http_load import HttpLoad
from benchmarks.machine_cpu import MachineCpu
from benchmarks.python_process import python_command
from benchmarks.quantiles import quantiles
from benchmarks.ratios import Spread, ratios
from benchmarks.service_clients import CLIENTS, FLOOR, REFERENCE, TOPIC
from benchmarks.service_process import ServiceFailed, aiohttp_events, fastapi_orders, free_port, service
from benchmarks.service_trouble import Target, Trouble, in_trouble, numbered

PARTITIONS = 6
TARGET = 1.2
"""Times the requests per second of the better of the others."""

PATIENCE = 30.0
"""Seconds for the last answers."""

IMPORTS = {"aiokafka": "aiokafka", "confluent-kafka-aio": "confluent_kafka"}

TARGETS = (
    Target("FastAPI, POST /orders", fastapi_orders, "/orders", "orders", numbered),
    Target("FastAPI, POST /clicks", fastapi_orders, "/clicks", "clicks", numbered),
    Target("aiohttp, POST /events", aiohttp_events, "/events", "events", numbered),
)


@dataclass(frozen=True)
class Run:
    """One client's turn. ``cpu_us`` is the service's CPU time per request."""

    records: int
    client: str
    round: int
    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    problems: list[str]


@dataclass(frozen=True)
class Report:
    """All rounds, and all trouble; a ratio is of the same round."""

    environment: Environment
    clients: int
    seconds: int
    runs: Sequence[Run]
    troubles: Sequence[Trouble]

    def of(self, records: int, client: str) -> dict[int, float]:
        """Requests per second, by round."""
        return {run.round: run.requests_per_s for run in self.runs if (run.records, run.client) == (records, client)}

    def ratio(self, records: int, client: str) -> Spread | None:
        """How many times the requests of ``client`` the service on aioproducer answers."""
        return ratios(self.of(records, REFERENCE), self.of(records, client))

    def verdicts(self) -> list[Verdict]:
        """By the number of records that come of a request: aioproducer beside the better of the others."""
        found = []
        for records in dict.fromkeys(run.records for run in self.runs):
            if better := self._better(records):
                name, ratio = better
                target = f"{records} a request: requests/s ÷ those on {name} ≥ {TARGET:g}"
                most = ratios(self.of(records, FLOOR), self.of(records, name))
                bound = f"; a client that costs nothing would have {most.median:.2f}" if most else ""
                found.append(Verdict(target, f"{ratio}{bound}", ratio.median >= TARGET))
        return found

    def _better(self, records: int) -> tuple[str, Spread] | None:
        """The client that comes closest, and how many times its requests the service on aioproducer answers."""
        others = [client for client in CLIENTS if client not in (REFERENCE, FLOOR)]
        measured = [(client, ratio) for client in others if (ratio := self.ratio(records, client))]
        return min(measured, key=lambda one: one[1].median, default=None)

    def problems(self) -> list[str]:
        found = [f"{run.client}, round {run.round}: {problem}" for run in self.runs for problem in run.problems]
        found += [verdict.problem for verdict in self.verdicts() if not verdict.met]
        for trouble in self.troubles:
            found += [f"{trouble.service}: {problem}" for problem in trouble.problems]
        return found

    def markdown(self) -> str:
        lines = [f"- {name}: {value}" for name, value in self.environment.lines()]
        if self.runs:
            lines += [*self._speed()]
        if self.troubles:
            lines += [*self._trouble()]
        if problems := self.problems():
            lines += ["", "### Problems", "", *(f"- {problem}" for problem in problems)]
        return "\n".join(lines) + "\n"

    def _speed(self) -> list[str]:
        lines = [
            "",
            f"{self.clients} clients at a time, {self.seconds} s a run; medians, ratios with the least and most.",
            "",
            "| records a request | service on | requests/s | p50 | p99 | CPU a request | aioproducer, times as many |",
            "|---:|---|---:|---:|---:|---:|---:|",
        ]
        for records, client in dict.fromkeys((run.records, run.client) for run in self.runs):
            runs = [run for run in self.runs if (run.records, run.client) == (records, client)]
            speed, p50, p99, cpu = (
                median(getattr(run, name) for run in runs) for name in ("requests_per_s", "p50_ms", "p99_ms", "cpu_us")
            )
            ratio = "" if client == REFERENCE else str(self.ratio(records, client) or "")
            lines.append(
                f"| {records} | {client} | {speed:,.0f} | {p50:.1f} ms | {p99:.1f} ms | {cpu:.0f} µs | {ratio} |"
            )
        verdicts = self.verdicts()
        return [*lines, "", *Verdict.table(verdicts)] if verdicts else lines

    def _trouble(self) -> list[str]:
        lines = ["", "The broker restarts under load, then the service gets SIGTERM.", ""]
        lines += ["| service | clients | answers | in the log | longest | promise |", "|---|---:|---|---:|---:|---|"]
        for one in self.troubles:
            answers = ", ".join(f"{status}: {count:,}" for status, count in one.answers.items())
            lines.append(
                f"| {one.service} | {one.clients:,} | {answers} | {one.in_log:,} "
                f"| {one.longest_s:.2f} s | {'; '.join(one.problems) or 'kept'} |"
            )
        return lines


def order_of(records: int, number: int) -> bytes:
    """A body of which come so many records."""
    lines = [{"article": f"a{line}", "count": line} for line in range(1, records)]
    return json.dumps({"id": str(number), "customer": f"c{number % 50}", "total": 9.5, "lines": lines}).encode()


async def measure(records: int, client: str, round_: int, servers: str, clients: int, seconds: float) -> Run:
    port = free_port()
    command = python_command("from benchmarks.service_app import main; main(*sys.argv[1:])", client, str(port), servers)
    async with service(command, port, {}) as running:
        warm_up = HttpLoad(port, "/orders", partial(order_of, records), clients)
        async with warm_up.flowing(patience=PATIENCE):
            await asyncio.sleep(min(1.0, seconds))
        load = HttpLoad(port, "/orders", partial(order_of, records), clients)
        began, cpu = time.perf_counter(), running.cpu_seconds()
        async with load.flowing(patience=PATIENCE):
            await asyncio.sleep(seconds)
        took, cpu = time.perf_counter() - began, running.cpu_seconds() - cpu
        running.terminate()
        await running.ended()
    bad = [reply for reply in (*warm_up.replies, *load.replies) if reply.status != 201]
    count = len(load.replies)
    times = quantiles([reply.seconds * 1000 for reply in load.replies])
    problems = [f"{len(bad)} answers are not 201, such as {bad[0].status}"] if bad else []
    return Run(records, client, round_, count, count / took, times["p50"], times["p99"], cpu / count * 1e6, problems)


@contextlib.asynccontextmanager
async def _broker(bootstrap_server: str | None) -> AsyncIterator[str]:
    if bootstrap_server is not None:
        yield bootstrap_server
        return
    async with ApacheKafka(performance=True) as kafka:
        async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            await admin.create_topic(NewTopic(TOPIC, PARTITIONS))
        yield kafka.bootstrap_servers


def installed(client: str) -> bool:
    return client not in IMPORTS or importlib.util.find_spec(IMPORTS[client]) is not None


async def services(options: argparse.Namespace, told: Callable[[str], object]) -> Report:
    there = f"a cluster that was there, {options.bootstrap_server}"
    broker = there if options.bootstrap_server else f"Apache Kafka {ApacheKafka().version}; embedded for the trouble"
    environment, cpu = Environment.now(loop=options.loop, broker=broker), MachineCpu()
    runs: list[Run] = []
    troubles: list[Trouble] = []
    if "speed" in options.parts:
        async with _broker(options.bootstrap_server) as servers:
            for records, round_ in itertools.product(options.records, range(1, options.rounds + 1)):
                for client in filter(installed, options.on):
                    runs.append(await measure(records, client, round_, servers, options.clients, options.seconds))
                    told(f"round {round_}, {records} a request, {client}: {runs[-1].requests_per_s:,.0f} requests/s")
    if "trouble" in options.parts:
        for target in TARGETS:
            troubles.append(await in_trouble(target, options.trouble_clients, options.seconds))
            told(f"{target.name}: {'; '.join(troubles[-1].problems) or 'kept its promise'}")
    environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, options.clients, options.seconds, runs, troubles)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks services",
        description="Measures a FastAPI service on aioproducer and on other clients, and services in trouble.",
        epilog=f"Exit status 0: every promise was kept, and aioproducer answers {TARGET:g} times the requests of "
        "the better of the others; 1: not so; 2: wrong usage.",
    )
    parts = ("speed", "trouble")
    parser.add_argument("--parts", type=some_of(parts), default=list(parts), metavar="NAME[,...]", help="speed,trouble")
    parser.add_argument(
        "--on", type=some_of(CLIENTS), default=list(CLIENTS), metavar="NAME[,...]", help=list_of(CLIENTS)
    )
    parser.add_argument(
        "--records", type=numbers, default=[1, 10], metavar="N[,...]", help="that come of a request (1,10)"
    )
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="%(default)s, of which medians count")
    parser.add_argument("--seconds", type=positive, default=5, metavar="S", help="of each run (%(default)s)")
    parser.add_argument("--clients", type=positive, default=200, metavar="N", help="that ask at a time (%(default)s)")
    parser.add_argument(
        "--trouble-clients", type=positive, default=1000, metavar="N", help="the same in trouble (%(default)s)"
    )
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT[,...]", help="instead of starting Kafka here")
    alone.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    try:
        return alone.report(services, parse_arguments(arguments))
    except (KafkaFailed, KafkaUnavailable, ServiceFailed) as error:
        print(error, file=sys.stderr)
        return 1
