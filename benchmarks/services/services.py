"""``python -m benchmarks services``: a FastAPI service on aioproducer and on other clients, and in trouble.

First it measures the requests per second that one process of the same service answers on each producer, in turn; HTTP
clients send the next request as soon as the last one is answered. With an option it counts the instructions of a
request. Then the examples get requests while the broker restarts and while they get SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.testing.kafka.apache_kafka import ApacheKafka, KafkaFailed, KafkaUnavailable
from benchmarks.harness import command
from benchmarks.harness.arguments import list_of, numbers, some_of
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.runtime import COLLECTORS
from benchmarks.services.callgrind import CallgrindFailed
from benchmarks.services.clients import CLIENTS, TOPIC
from benchmarks.services.instructions import Instructions, count_all
from benchmarks.services.process import ServiceFailed, aiohttp_events, fastapi_orders
from benchmarks.services.speed import TARGET, Speed, add_options, measure_all
from benchmarks.services.trouble import Target, Trouble, in_trouble, numbered

PARTITIONS = 6
PARTS = ("speed", "instructions", "trouble")
IMPORTS = {"aiokafka": "aiokafka", "confluent-kafka-aio": "confluent_kafka"}

TARGETS = (
    Target("FastAPI, POST /orders", fastapi_orders, "/orders", "orders", numbered),
    Target("FastAPI, POST /clicks", fastapi_orders, "/clicks", "clicks", numbered),
    Target("aiohttp, POST /events", aiohttp_events, "/events", "events", numbered),
)


@dataclass(frozen=True)
class Report:
    """What each part came to; None of a part that was left out."""

    environment: Environment
    speed: Speed | None = None
    instructions: Instructions | None = None
    troubles: Sequence[Trouble] = ()

    def problems(self) -> list[str]:
        found = [] if self.speed is None else list(self.speed.problems())
        return found + [f"{one.service}: {problem}" for one in self.troubles for problem in one.problems]

    def markdown(self) -> str:
        lines = [*self.tables(), "", *self.trouble()] if self.troubles else self.tables()
        return command.page(self.environment, lines, self.problems())

    def tables(self) -> list[str]:
        """What each client came to, as lines of Markdown."""
        parts = [part.markdown() for part in (self.speed, self.instructions) if part is not None]
        return [line for part in parts for line in ("", *part)][1:]

    def trouble(self) -> list[str]:
        """What came of each service in trouble, as lines of Markdown."""
        lines = ["The broker restarts under load, then the service gets SIGTERM.", ""]
        lines += ["| service | clients | answers | in the log | longest | promise |", "|---|---:|---|---:|---:|---|"]
        for one in self.troubles:
            answers = ", ".join(f"{status}: {count:,}" for status, count in one.answers.items())
            lines.append(
                f"| {one.service} | {one.clients:,} | {answers} | {one.in_log:,} "
                f"| {one.longest_s:.2f} s | {'; '.join(one.problems) or 'kept'} |"
            )
        return lines


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


async def services(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    there = f"a cluster that was there, {options.bootstrap_server}"
    broker = there if options.bootstrap_server else f"Apache Kafka {ApacheKafka().version}; embedded for the trouble"
    environment, cpu = Environment.now(loop=options.loop, broker=broker), MachineCpu()
    made = Report(environment)
    on = list(filter(installed, options.on))
    kinds = list(itertools.product(options.records, options.gc))
    if not {"speed", "instructions"}.isdisjoint(options.parts):
        async with _broker(options.bootstrap_server) as servers:
            if "speed" in options.parts:
                speed = await measure_all(
                    kinds, on, options.rounds, servers, options.clients, options.seconds, progress
                )
                made = replace(made, speed=speed)
            if "instructions" in options.parts:
                made = replace(made, instructions=await count_all(options.records, on, servers, progress))
    if "trouble" in options.parts:
        troubles = []
        for target in TARGETS:
            troubles.append(await in_trouble(target, options.clients, options.seconds))
            progress(f"{target.name}: {'; '.join(troubles[-1].problems) or 'kept its promise'}")
        made = replace(made, troubles=troubles)
    return replace(made, environment=replace(environment, others=cpu.others()))


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks services",
        description="Measures a FastAPI service on aioproducer and on other clients, and services in trouble.",
        epilog=f"Exit status 0: every promise was kept, and aioproducer answers {TARGET:g} times the requests of "
        "the better of the others; 1: not so; 2: wrong usage.",
    )
    parser.add_argument(
        "--parts",
        type=some_of(PARTS),
        default=["speed", "trouble"],
        metavar="NAME[,...]",
        help=f"{list_of(PARTS)}; speed and trouble by default, instructions need valgrind",
    )
    parser.add_argument(
        "--on", type=some_of(CLIENTS), default=list(CLIENTS), metavar="NAME[,...]", help=list_of(CLIENTS)
    )
    parser.add_argument(
        "--records", type=numbers, default=[1, 10], metavar="N[,...]", help="that come of a request (1,10)"
    )
    parser.add_argument(
        "--gc", type=some_of(COLLECTORS), default=list(COLLECTORS), metavar="NAME[,...]", help=list_of(COLLECTORS)
    )
    add_options(parser)
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    try:
        return command.report(services, parse_arguments(arguments))
    except (CallgrindFailed, KafkaFailed, KafkaUnavailable, ServiceFailed) as error:
        print(error, file=sys.stderr)
        return 1
