"""``python -m benchmarks outage``: what a producer does while its only broker is down, and when it is back.

Real Kafka, one node, taken down in each way: ``refused``, where the process is killed and connections are refused, and
``silent``, where it is stopped in its tracks (SIGSTOP), connections stay open and nothing is answered. A steady stream
of records continues, so the CPU time includes accepting them. Afterwards Kafka's own console
consumer shows whether every record is there once, in order and at the acknowledged offset. In the third case, ``gone``,
the broker never comes back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aioproducer import Delivery, KafkaProducer, ProducerRecord, wait_all
from aioproducer.testing.delivered import delivery_problems
from aioproducer.testing.kafka.apache_kafka import ApacheKafka, KafkaFailed, KafkaUnavailable
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu

PARTITIONS = 6
RATE = 200
"""Records a second."""

CPU = 0.05
"""The share of a core that an outage may cost."""

LINES = 10
"""The lines that it may be worth in the log."""

LATE = 1_000.0
"""Milliseconds after delivery.timeout.ms by which every delivery must have ended, on a machine however busy."""

CLOSE = 5.0
"""Seconds given to ``close`` when the broker is gone."""


WAYS = {"refused": "connections refused (killed, restarted)", "silent": "silent (SIGSTOP, SIGCONT)"}
"""How the broker is taken down, and what its return is."""


class LogCounter(logging.Handler):
    """The lines of the package that a user would see, at INFO and above."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")

    @contextlib.contextmanager
    def listening(self) -> Any:
        logger = logging.getLogger("aioproducer")
        level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        try:
            yield self
        finally:
            logger.removeHandler(self)
            logger.setLevel(level)


class Stream:
    """Keyed records at a steady rate, each with its delivery."""

    def __init__(self, producer: KafkaProducer, topic: str) -> None:
        self.sent: list[ProducerRecord] = []
        self.deliveries: list[Delivery] = []
        self._producer = producer
        self._topic = topic

    @contextlib.asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._flow())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _flow(self) -> None:
        loop = asyncio.get_running_loop()
        begun, before = loop.time(), len(self.sent)
        while True:
            while len(self.sent) - before < (loop.time() - begun) * RATE:
                number = len(self.sent)
                self.sent.append(ProducerRecord(self._topic, b"%d" % number, b"key %d" % (number % 50)))
                self.deliveries.append(self._producer.send(self.sent[-1]))
            await asyncio.sleep(0.02)


@dataclass(frozen=True)
class Outage:
    """One outage. ``resumed_ms``: from the broker's return to the first delivery."""

    case: str
    seconds: float
    records: int
    cpu_share: float
    log_lines: list[str]
    resumed_ms: float
    allowed_ms: float
    """Two back-offs: the longest of reconnect.backoff.max.ms and retry.backoff.max.ms, twice."""
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Gone:
    """The broker never came back. ``latest_ms``: how long after its delivery.timeout.ms a delivery ended at worst."""

    delivery_timeout_ms: int
    records: int
    latest_ms: float
    close_s: float
    cpu_share: float
    log_lines: list[str]
    problems: list[str] = field(default_factory=list)


async def outage(case: str, seconds: float) -> Outage:
    loop = asyncio.get_running_loop()
    counter = LogCounter()
    async with ApacheKafka() as kafka:
        await kafka.tools.create_topic(case, partitions=PARTITIONS)
        async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            stream = Stream(producer, case)
            async with stream.flowing():
                await asyncio.sleep(3)
                with counter.listening():
                    await asyncio.to_thread(kafka.kill_node if case == "refused" else kafka.pause_node, 1)
                    began, cpu = loop.time(), time.process_time()
                    await asyncio.sleep(seconds)
                    share = (time.process_time() - cpu) / (loop.time() - began)
                    oldest = next((one for one in stream.deliveries if not one.done()), stream.deliveries[-1])
                    delivered = asyncio.create_task(_end_of(oldest))
                    await asyncio.to_thread(kafka.start_node if case == "refused" else kafka.resume_node, 1)
                    returned = loop.time()
                    resumed = max(0.0, await delivered - returned)
                    await asyncio.sleep(3)
            await producer.flush()
            config = producer.config
        return Outage(
            case,
            seconds,
            len(stream.sent),
            share,
            counter.lines,
            resumed * 1e3,
            2.0 * max(config.reconnect_backoff_max_ms, config.retry_backoff_max_ms),
            await _problems(kafka, stream),
        )


async def _end_of(delivery: Delivery) -> float:
    await wait_all([delivery])
    return asyncio.get_running_loop().time()


async def _problems(kafka: ApacheKafka, stream: Stream) -> list[str]:
    failures = [error for delivery in stream.deliveries if (error := delivery.exception()) is not None]
    if failures:
        return [f"{len(failures)} records failed, such as: {failures[0]}"]
    metadata = [delivery.result() for delivery in stream.deliveries]
    topic = stream.sent[0].topic
    there = sum((await kafka.tools.get_offsets(topic)).values())
    if there != len(stream.sent):
        return [f"{there} records are in the log, {len(stream.sent)} were sent"]
    consumed = await kafka.tools.console_consumer(topic, max_messages=there, timeout=120)
    return list(delivery_problems(stream.sent, consumed, metadata=metadata))[:5]


async def gone(delivery_timeout_ms: int) -> Gone:
    loop = asyncio.get_running_loop()
    counter = LogCounter()
    request_timeout_ms = min(30_000, delivery_timeout_ms // 2)
    async with ApacheKafka() as kafka:
        await kafka.tools.create_topic("gone", partitions=PARTITIONS)
        producer = KafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers,
            delivery_timeout_ms=delivery_timeout_ms,
            request_timeout_ms=request_timeout_ms,
        )
        await producer.start()
        try:
            await producer.send("gone", b"first")
            with counter.listening():
                await asyncio.to_thread(kafka.kill_node, 1)
                began, cpu = loop.time(), time.process_time()
                late: list[float] = []
                problems: list[str] = []

                async def one(number: int) -> None:
                    await asyncio.sleep(number / RATE)
                    delivery, sent = producer.send("gone", b"%d" % number, key=b"%d" % number), loop.time()
                    await wait_all([delivery])
                    late.append((loop.time() - sent) * 1000 - delivery_timeout_ms)
                    if delivery.exception() is None:
                        problems.append(f"record {number} was delivered")

                await asyncio.gather(*map(one, range(10 * RATE)))
                share = (time.process_time() - cpu) / (loop.time() - began)
                left = [producer.send("gone", b"left") for _ in range(1000)]
                closing = loop.time()
                await producer.close(timeout=CLOSE)
                closed = loop.time() - closing
                if not all(delivery.done() for delivery in left):
                    problems.append("close left deliveries behind")
        finally:
            await producer.close(0)
    return Gone(delivery_timeout_ms, len(late), max(late), closed, share, counter.lines, problems)


@dataclass(frozen=True)
class Report:
    environment: Environment
    outages: Sequence[Outage]
    gone: Sequence[Gone]

    def verdicts(self) -> list[Verdict]:
        """Of the worst of all rounds."""
        every: list[Outage | Gone] = [*self.outages, *self.gone]
        cpu, lines = max(one.cpu_share for one in every), max(len(one.log_lines) for one in every)
        last = max(self.outages, key=lambda one: one.resumed_ms / one.allowed_ms)
        latest, close = max(one.latest_ms for one in self.gone), max(one.close_s for one in self.gone)
        wrong = [problem for one in every for problem in one.problems]
        return [
            Verdict(f"CPU ≤ {CPU:.0%} of a core", f"{cpu:.1%}", cpu <= CPU),
            Verdict(f"lines in the log ≤ {LINES}", f"{lines}", lines <= LINES),
            Verdict(
                f"first delivery after the return ≤ two back-offs, {last.allowed_ms:,.0f} ms",
                f"{last.resumed_ms:,.0f} ms",
                last.resumed_ms <= last.allowed_ms,
            ),
            Verdict(f"latest end after delivery.timeout.ms ≤ {LATE:,.0f} ms", f"{latest:,.0f} ms", latest <= LATE),
            Verdict(f"close(timeout={CLOSE:.0f}) ≤ {CLOSE + 1:.0f} s", f"{close:.2f} s", close <= CLOSE + 1),
            Verdict("every record has the one right end", "; ".join(wrong) or "yes", not wrong),
        ]

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            "| outage | seconds | records | CPU of a core | lines in the log | first delivery after the return "
            "| in Kafka's log |",
            "|---|---:|---:|---:|---:|---:|---|",
        ]
        lines += [
            f"| {WAYS[one.case]} | {one.seconds:.0f} | {one.records:,} | {one.cpu_share:.1%} | {len(one.log_lines)} "
            f"| {one.resumed_ms:.0f} ms | {'; '.join(one.problems) or 'once, in order, where told'} |"
            for one in self.outages
        ]
        lines += [
            "",
            f"| | delivery.timeout.ms | records | latest end after it | CPU of a core | lines in the log "
            f"| close(timeout={CLOSE:.0f}) took |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        lines += [
            f"| gone for good | {end.delivery_timeout_ms:,} | {end.records:,} | {end.latest_ms:.0f} ms "
            f"| {end.cpu_share:.1%} | {len(end.log_lines)} | {end.close_s:.2f} s |"
            for end in self.gone
        ]
        return [*lines, "", *Verdict.table(self.verdicts())]

    def markdown(self) -> str:
        logged = [(one.case, line) for one in self.outages for line in one.log_lines]
        logged += [("gone", line) for one in self.gone for line in one.log_lines]
        lines = [f"    {case}: {line:.160}" for case, line in logged]
        return command.page(self.environment, [*self.tables(), "", *lines])


async def run(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment = Environment.now(loop=options.loop, broker=f"Apache Kafka {ApacheKafka().version}, one node")
    cpu = MachineCpu()
    outages, ends = [], []
    for number in range(options.rounds):
        for case in WAYS:
            progress(f"round {number + 1}: {case}, {options.seconds} s")
            outages.append(await outage(case, options.seconds))
        progress(f"round {number + 1}: gone, {options.delivery_timeout / 1000:.0f} s")
        ends.append(await gone(options.delivery_timeout))
    return Report(dataclasses.replace(environment, others=cpu.others()), outages, ends)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks outage",
        description="Takes a real Kafka down under a producer: CPU, log, recovery, and whether every record is there.",
        epilog=f"Exit status 0: at most {CPU:.0%} of a core, {LINES} lines, back in two back-offs, nothing lost.",
    )
    parser.add_argument("--seconds", type=positive, default=60, help="of each outage (%(default)s)")
    parser.add_argument("--delivery-timeout", type=positive, default=30_000, metavar="MS", help="when it is gone")
    parser.add_argument("--rounds", type=positive, default=1)
    command.add_options(parser, written="all figures, and the log,")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    try:
        return command.report(run, parse_arguments(arguments))
    except (KafkaFailed, KafkaUnavailable) as error:
        print(error, file=sys.stderr)
        return 1
