"""One whole comparison: which clients are there, a broker, all runs."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from aioproducer.testing.kafka.apache_kafka import ApacheKafka, KafkaFailed, KafkaUnavailable
from benchmarks.comparison.broker import Broker, BrokerOf
from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.report import Report
from benchmarks.comparison.runner import Runner
from benchmarks.comparison.worker import describe
from benchmarks.harness.command import say
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.runtime import best_loop
from benchmarks.harness.usage import cpu_seconds_of
from benchmarks.works.run import Description
from benchmarks.works.works import Work


class NoClients(Exception):
    """None of the clients is installed."""


KAFKA = f"Apache Kafka {ApacheKafka().version}, one node on the same machine"


@dataclass(frozen=True)
class Stage:
    """``brokers`` starts them; ``title`` says which. ``records`` is the number of records of a work for a client."""

    title: str
    brokers: Callable[[], AbstractAsyncContextManager[BrokerOf]]
    records: Callable[[Work, Description], int]


Kept = Callable[[Report], object]
"""Told after each run what there is so far."""


def compare_or_explain(
    options: Namespace, works: Iterable[Work], kept: Kept, stage: Stage | None = None
) -> Report | None:
    """Compares as a command: standard error has a line about each run, or the reason why nothing was measured (None).

    An interrupted comparison returns what there is.
    """
    latest: Report | None = None

    def keep(report: Report) -> None:
        nonlocal latest
        latest = report
        kept(report)

    try:
        return asyncio.run(_until_terminated(compare(options, works, say, keep, stage or _on_one_broker(options))))
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("Interrupted.")
        return latest
    except (KafkaFailed, KafkaUnavailable) as error:
        print(f"{error}\nWith --bootstrap-server an existing cluster will do.", file=sys.stderr)
    except NoClients as error:
        print(f"There is nothing to measure: {error}", file=sys.stderr)
    return None


async def _until_terminated(measuring: Coroutine[Any, Any, Report]) -> Report:
    """SIGTERM ends it as Ctrl-C does: with all processes that it started."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await measuring


async def compare(
    options: Namespace,
    works: Iterable[Work],
    progress: Callable[[str], object],
    kept: Kept = lambda report: None,
    stage: Stage | None = None,
) -> Report:
    """``options`` are those of the commands; ``progress`` gets a line for every run.

    Raises KafkaUnavailable or KafkaFailed when there is to be a Kafka and cannot be, and NoClients.
    """
    began = time.monotonic()
    clients = await asyncio.gather(*(describe(name) for name in options.clients))
    if all(client.missing for client in clients):
        raise NoClients("; ".join(f"{client.name}: {client.missing}" for client in clients))
    loop = "asyncio" if options.no_uvloop else best_loop()
    cases = [Case(work) for work in works]
    stage = stage or _on_one_broker(options)
    environment, cpu = Environment.now(loop=loop, broker=stage.title, alone=False), MachineCpu()
    report = Report(environment, clients, cases, options.rounds)

    def ran(case: Case, done: Done) -> None:
        progress(_line(case, done))
        kept(report)

    async with stage.brokers() as broker_of:
        runner = Runner(broker_of, loop, stage.records, ran)
        await runner.run(cases, report.present, options.rounds)
    ended = dataclasses.replace(environment, others=cpu.others(), minutes=(time.monotonic() - began) / 60)
    report = dataclasses.replace(report, environment=ended)
    kept(report)
    return report


def _on_one_broker(options: Namespace) -> Stage:
    def records(work: Work, client: Description) -> int:
        return options.records or work.records_of(client.share, quick=options.quick)

    if options.bootstrap_server is not None:
        title = f"a cluster that was there, {options.bootstrap_server}"
    else:
        title = f"{KAFKA}, started for this"
    return Stage(title, partial(_one_broker, options.bootstrap_server), records)


@contextlib.asynccontextmanager
async def _one_broker(bootstrap_server: str | None) -> AsyncIterator[BrokerOf]:
    if bootstrap_server is not None:
        broker = Broker(bootstrap_server)
        yield lambda client: broker
        return
    async with ApacheKafka(performance=True) as kafka:
        broker = Broker(kafka.bootstrap_servers, partial(cpu_seconds_of, kafka.pid(1)))
        yield lambda client: broker


def _line(case: Case, done: Done) -> str:
    turn = f"round {done.round}" if done.round else "warm-up"
    where = f"{case.work.name}, {turn}, {done.client}"
    if done.problem or done.measurement is None:
        return f"{where}: {done.problem}"
    return f"{where}: {done.measurement.records / done.measurement.seconds:,.0f} records/s"
