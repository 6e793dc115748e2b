"""``python -m benchmarks broker``: the embedded broker beside the mock cluster that librdkafka has built in.

The same plain producer of confluent-kafka sends the same records to both in turn, each time in a process of its own:
to the embedded broker in another process, to the mock cluster in its own, which librdkafka runs in a thread of C that
keeps, checks and parses nothing. Then small Produce requests come to the embedded broker at a steady rate. A latency is
counted from when a request was due, so that one which is late makes those behind it late as well. Last
``aioproducer broker`` is started as a user starts it.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from benchmarks.broker.start import Start, start
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.processes import broker_process, output_of
from benchmarks.harness.runtime import loop_factory
from benchmarks.harness.statistics import Spread, ratios

AT_LEAST = 0.9
"""What the embedded broker has to reach of the mock cluster's records per second."""

WITHIN_MS = 2.0
"""The 99th percentile of a small request's latency has to be below this."""

START_S, PEAK_MIB = 0.5, 100
"""So long ``aioproducer broker`` may take to be there, and so much memory."""

PARTITIONS = 4
"""As many as topics of the mock cluster have."""


@dataclass(frozen=True)
class Rate:
    """One run: records per second to ``broker``, "embedded" or "mock"."""

    broker: str
    round: int
    records_per_s: float


@dataclass(frozen=True)
class Latency:
    """Milliseconds of small Produce requests in one round."""

    round: int
    p50_ms: float
    p99_ms: float
    most_ms: float


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    records: int
    size: int
    requests_per_s: int
    rates: Sequence[Rate]
    latencies: Sequence[Latency]
    starts: Sequence[Start]

    def of(self, broker: str) -> dict[int, float]:
        return {rate.round: rate.records_per_s for rate in self.rates if rate.broker == broker}

    def ratio(self) -> Spread:
        found = ratios(self.of("embedded"), self.of("mock"))
        assert found is not None
        return found

    def verdicts(self) -> list[Verdict]:
        ratio, p99 = self.ratio(), Spread.of([latency.p99_ms for latency in self.latencies])
        started = Spread.of([start.seconds for start in self.starts])
        found = [
            Verdict(f"records/s ÷ the mock cluster's ≥ {AT_LEAST}", str(ratio), ratio.median >= AT_LEAST),
            Verdict(f"p99 of a small request < {WITHIN_MS:g} ms", f"{p99} ms", p99.median < WITHIN_MS),
            Verdict(f"start of `aioproducer broker` < {START_S} s", f"{started} s", started.median < START_S),
        ]
        peaks = [start.peak_mib for start in self.starts if start.peak_mib is not None]
        if peaks:
            peak = Spread.of(peaks)
            found.append(Verdict(f"its memory by then, at most < {PEAK_MIB} MiB", f"{peak} MiB", peak.most < PEAK_MIB))
        return found

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        mock, embedded = (Spread.of(list(self.of(broker).values())) for broker in ("mock", "embedded"))
        p50 = Spread.of([latency.p50_ms for latency in self.latencies])
        return [
            f"{self.records:,} records of {self.size} B from confluent-kafka; then {self.requests_per_s:,} small "
            f"Produce requests a second (p50 {p50} ms); medians (least–greatest) of {len(self.latencies)} rounds.",
            "",
            "| broker | records/s | ÷ mock |",
            "|---|---:|---:|",
            f"| librdkafka's mock cluster | {mock.median:,.0f} ({mock.least:,.0f}–{mock.most:,.0f}) | 1 |",
            f"| embedded | {embedded.median:,.0f} ({embedded.least:,.0f}–{embedded.most:,.0f}) | {self.ratio()} |",
            "",
            *Verdict.table(self.verdicts()),
        ]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


def serve(loop: str) -> None:
    """Prints the address, and ends with the standard input."""
    from aioproducer.broker import EmbeddedCluster

    async def run() -> None:
        async with EmbeddedCluster(configs={"num.partitions": PARTITIONS, "log.retention.bytes": 256 << 20}) as cluster:
            print(cluster.bootstrap_servers, flush=True)
            await asyncio.to_thread(sys.stdin.read)

    with asyncio.Runner(loop_factory=loop_factory(loop)) as runner:
        runner.run(run())


def embedded(loop: str) -> AbstractAsyncContextManager[str]:
    """The embedded broker in a process of its own; yields its bootstrap server."""
    return broker_process("from benchmarks.broker.broker import serve; serve(sys.argv[1])", loop)


async def produce(servers: str | None, records: int, size: int) -> float:
    """Records per second of a producer in a process of its own; ``servers`` None: to a mock cluster in there."""
    statement = "from benchmarks.broker.load import produce; produce(sys.argv[1:])"
    said = await output_of(statement, servers or "", str(records), str(size))
    return float(json.loads(said))


async def latency(servers: str, requests: int, per_s: int, loop: str) -> tuple[float, float, float]:
    """p50, p99 and the most, in milliseconds."""
    statement = "from benchmarks.broker.load import latency; latency(sys.argv[1:])"
    p50, p99, most = json.loads(await output_of(statement, servers, str(requests), str(per_s), loop))
    return p50, p99, most


async def broker(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment, cpu = Environment.now(loop=options.loop, broker="embedded, in a process of its own"), MachineCpu()
    rates: list[Rate] = []
    latencies: list[Latency] = []
    starts: list[Start] = []
    for round_ in range(1, options.rounds + 1):
        rates.append(Rate("mock", round_, await produce(None, options.records, options.size)))
        async with embedded(options.loop) as servers:
            rates.append(Rate("embedded", round_, await produce(servers, options.records, options.size)))
        async with embedded(options.loop) as servers:
            figures = await latency(servers, options.requests, options.requests_per_s, options.loop)
        latencies.append(Latency(round_, *figures))
        starts.append(await start(round_))
        mock, ours = rates[-2].records_per_s, rates[-1].records_per_s
        progress(
            f"round {round_}: {ours:,.0f} ÷ {mock:,.0f} records/s = {ours / mock:.2f}, p99 {figures[1]:.2f} ms, "
            f"start {starts[-1].seconds:.2f} s"
        )
    environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, options.records, options.size, options.requests_per_s, rates, latencies, starts)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks broker",
        description="Measures the embedded broker beside librdkafka's mock cluster.",
        epilog="Exit status 0: every target is met; 1: not so.",
    )
    parser.add_argument("--records", type=positive, default=2_000_000, metavar="N", help="%(default)s a run")
    parser.add_argument("--size", type=positive, default=100, metavar="BYTES", help="of a record, %(default)s")
    parser.add_argument("--requests", type=positive, default=10_000, metavar="N", help="%(default)s a round")
    parser.add_argument("--requests-per-s", type=positive, default=1_000, metavar="N", help="%(default)s")
    parser.add_argument(
        "--rounds", type=positive, default=5, metavar="N", help="%(default)s, of which the medians count"
    )
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    return command.report(broker, parse_arguments(arguments))
