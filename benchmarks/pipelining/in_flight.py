"""``python -m benchmarks in-flight``: KIP-1269's table of a local broker: 1, 5 and 10 requests in flight.

A transactional producer sends records of 1000 B to one partition as fast as they are taken, as the KIP's
``kafka-producer-perf-test`` does, to a broker on the same machine that announces the window. The KIP's figures are of
Kafka's producer, with Kafka's broker, on another machine: only ratios can be compared, not records per second.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from statistics import mean, median

from aioproducer import Delivery, KafkaProducer
from aioproducer.broker import EmbeddedCluster
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.processes import broker_process
from benchmarks.harness.statistics import Spread

KIP_RECORDS_PER_S = {1: 198562.4, 5: 285087.1, 10: 307238.5}
"""The KIP's second table, by requests in flight."""

TOPIC = "near"
VALUE = bytes(1000)
TRANSACTION_S = 3.0
"""The tool's default: after so long a transaction is committed, and the next one begins."""

CHUNK = 100
"""Records after which the clock is read, and of which one's latency is taken."""


@dataclass(frozen=True)
class Run:
    """``latencies_ms`` are of one record in CHUNK, from ``enqueue`` to its acknowledgement."""

    in_flight: int
    round: int
    records: int
    records_per_s: float
    average_ms: float
    p99_ms: float


def near_broker(window: int) -> AbstractAsyncContextManager[str]:
    """The embedded broker in a process of its own; yields its bootstrap server.

    ``TOPIC`` has one partition, for which the broker announces this window (KIP-1269: at least 5).
    """
    statement = "from benchmarks.pipelining.in_flight import serve_near; serve_near(int(sys.argv[1]))"
    return broker_process(statement, str(window))


def serve_near(window: int) -> None:
    """Prints the address, and ends with the standard input."""

    async def serve() -> None:
        async with EmbeddedCluster() as cluster:
            cluster.create_topic(TOPIC, configs={"producer.state.batches.to.retain": max(window, 5)})
            print(cluster.bootstrap_servers, flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(serve())


async def measure(in_flight: int, round_: int, records: int) -> Run:
    async with (
        near_broker(in_flight) as bootstrap_servers,
        KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            transactional_id="thisistest",
            max_in_flight_requests_per_connection=in_flight,
        ) as producer,
    ):
        await producer.init_transactions()
        await _send(producer, records // 10)  # connections, metadata, and the window in the answers
        begun = time.perf_counter()
        latencies = await _send(producer, records)
        elapsed = time.perf_counter() - begun
    latencies.sort()
    p99 = latencies[len(latencies) * 99 // 100]
    return Run(in_flight, round_, records, records / elapsed, mean(latencies) * 1000, p99 * 1000)


async def _send(producer: KafkaProducer, records: int) -> list[float]:
    """All are committed when it returns; the latencies, in seconds, of one in CHUNK."""
    latencies: list[float] = []
    await producer.begin_transaction()
    begun = time.perf_counter()
    for start in range(0, records, CHUNK):
        sent = time.perf_counter()
        if sent - begun > TRANSACTION_S:
            await producer.commit_transaction()
            await producer.begin_transaction()
            sent = begun = time.perf_counter()
        _timed(await producer.enqueue(TOPIC, VALUE), sent, latencies)
        for _ in range(min(CHUNK, records - start) - 1):
            _ = await producer.enqueue(TOPIC, VALUE)
    await producer.commit_transaction()
    return latencies


def _timed(delivery: Delivery, sent: float, latencies: list[float]) -> None:
    delivery.add_done_callback(lambda _: latencies.append(time.perf_counter() - sent))


@dataclass(frozen=True)
class Report:
    """All rounds; a ratio is to 1 in flight in the same round."""

    environment: Environment
    records: int
    rounds: int
    runs: Sequence[Run]

    def of(self, in_flight: int) -> list[Run]:
        return [run for run in self.runs if run.in_flight == in_flight]

    def ratio(self, in_flight: int) -> Spread:
        pairs = zip(self.of(in_flight), self.of(1), strict=True)
        return Spread.of([run.records_per_s / one.records_per_s for run, one in pairs])

    def problems(self) -> list[str]:
        """Every commit succeeded, or there would be no report."""
        return []

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"{self.records:,} records of {len(VALUE):,} B a run, one partition, transactional; medians of "
            f"{self.rounds} rounds, ratios with the least and the greatest.",
            "",
            "| in flight | records/s | average latency | 99th percentile | ratio to 1 in flight | the KIP's ratio |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        for in_flight, theirs in KIP_RECORDS_PER_S.items():
            runs = self.of(in_flight)
            speed, average, p99 = (
                median(getattr(run, name) for run in runs) for name in ("records_per_s", "average_ms", "p99_ms")
            )
            lines.append(
                f"| {in_flight} | {speed:,.0f} | {average:.1f} ms | {p99:.1f} ms | {self.ratio(in_flight)} | "
                f"{theirs / KIP_RECORDS_PER_S[1]:.2f} |"
            )
        return lines

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


async def in_flight(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment, cpu = Environment.now(loop=options.loop, broker="embedded, in another process"), MachineCpu()
    runs: list[Run] = []
    for round_ in range(1, options.rounds + 1):
        for number in KIP_RECORDS_PER_S:
            runs.append(await measure(number, round_, options.records))
            progress(f"round {round_}, {number} in flight: {runs[-1].records_per_s:,.0f} records/s")
    environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, options.records, options.rounds, runs)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks in-flight",
        description="Measures a transactional producer with 1, 5 and 10 requests in flight to a broker beside it.",
    )
    parser.add_argument("--records", type=positive, default=200_000, metavar="N", help="%(default)s")
    parser.add_argument(
        "--rounds", type=positive, default=5, metavar="N", help="%(default)s, of which the medians count"
    )
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    return command.report(in_flight, parse_arguments(arguments))
