"""``python -m benchmarks observability``: what observability costs a record.

The same records are sent with each way of watching in turn, to a broker that keeps nothing; what counts is the CPU time
of this process. Metrics are counted in any case: what they cost beyond that is a scrape.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from aioproducer import KafkaProducer, ProducerInterceptor
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.discarding_broker import REACHED, discarding_broker
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.statistics import Spread

VALUE = bytes(100)
PARTITIONS = 6
NOTHING = "nothing"


def _reported() -> dict[str, Any]:
    from prometheus_client import CollectorRegistry

    from aioproducer.integrations.prometheus import PrometheusReporter

    return {"metric_reporters": [PrometheusReporter(CollectorRegistry())]}


def _traced(share: float | None) -> dict[str, Any]:
    """``share`` of the spans is sampled; None is without an SDK."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
    from opentelemetry.trace import NoOpTracerProvider

    from aioproducer.integrations.opentelemetry import TracingInterceptor

    sdk = None if share is None else TracerProvider(sampler=TraceIdRatioBased(share), shutdown_on_exit=False)
    return {"interceptor_classes": [TracingInterceptor(tracer_provider=sdk or NoOpTracerProvider())]}


WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    NOTHING: dict,
    "Prometheus": _reported,
    "an interceptor that does nothing": lambda: {"interceptor_classes": [ProducerInterceptor()]},
    "tracing without an SDK": partial(_traced, None),
    "tracing, nothing sampled": partial(_traced, 0.0),
    "tracing, 1 % sampled": partial(_traced, 0.01),
    "tracing, everything sampled": partial(_traced, 1.0),
}
"""What a producer is configured with, anew for each run. No span is exported: that costs what the exporter costs."""


@dataclass(frozen=True)
class Run:
    way: str
    round: int
    ns_per_record: float


@dataclass(frozen=True)
class Report:
    """All rounds; what a way adds is taken within a round. ``scrape_ms`` is of a registry with one producer."""

    environment: Environment
    records: int
    runs: Sequence[Run]
    scrape_ms: Sequence[float]

    def added(self, way: str) -> Spread:
        """Nanoseconds per record beyond nothing."""
        nothing = {run.round: run.ns_per_record for run in self.runs if run.way == NOTHING}
        return Spread.of([run.ns_per_record - nothing[run.round] for run in self.runs if run.way == way])

    def problems(self) -> list[str]:
        return []

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"{self.records:,} records of {len(VALUE)} B a run; medians, and of what is added the least and greatest.",
            "",
            "| watched by | ns of CPU per record | ns added |",
            "|---|---:|---:|",
        ]
        for way in WAYS:
            spent = Spread.of([run.ns_per_record for run in self.runs if run.way == way])
            added = self.added(way)
            words = "" if way == NOTHING else f"{added.median:,.0f} ({added.least:,.0f}–{added.most:,.0f})"
            lines.append(f"| {way} | {spent.median:,.0f} | {words} |")
        scrape = Spread.of(self.scrape_ms)
        return [
            *lines,
            "",
            f"A scrape by Prometheus takes {scrape.median:.1f} ms ({scrape.least:.1f}–{scrape.most:.1f}).",
        ]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


async def measure(way: str, round_: int, servers: str, records: int) -> Run:
    async with KafkaProducer(bootstrap_servers=servers, **WAYS[way]()) as producer:
        await _send(producer, records // 10)
        began = time.process_time()
        await _send(producer, records)
        spent = time.process_time() - began
    return Run(way, round_, spent / records * 1e9)


async def _send(producer: KafkaProducer, records: int) -> None:
    for _ in range(records):
        _ = await producer.enqueue(REACHED, VALUE)
    await producer.flush()


async def scrape(servers: str) -> float:
    """Milliseconds."""
    from prometheus_client import CollectorRegistry, generate_latest

    from aioproducer.integrations.prometheus import PrometheusReporter

    registry = CollectorRegistry()
    async with KafkaProducer(bootstrap_servers=servers, metric_reporters=[PrometheusReporter(registry)]) as producer:
        await _send(producer, 100)
        generate_latest(registry)
        began = time.process_time()
        generate_latest(registry)
        return (time.process_time() - began) * 1000


async def observability(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment, cpu = Environment.now(loop=options.loop, broker="one that keeps nothing"), MachineCpu()
    runs: list[Run] = []
    scrapes: list[float] = []
    async with discarding_broker(PARTITIONS) as servers:
        for round_ in range(1, options.rounds + 1):
            for way in WAYS:
                runs.append(await measure(way, round_, servers, options.records))
                progress(f"round {round_}, {way}: {runs[-1].ns_per_record:,.0f} ns")
            scrapes.append(await scrape(servers))
    environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, options.records, runs, scrapes)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks observability",
        description="Measures what metrics and traces cost a record.",
    )
    parser.add_argument("--records", type=positive, default=50_000, metavar="N", help="a run (%(default)s)")
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="%(default)s, of which medians count")
    command.add_options(parser)
    return command.report(observability, parser.parse_args(arguments))
