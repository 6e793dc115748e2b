"""``python -m benchmarks pipeline``: pipeline=auto beside fixed settings of linger.ms, over lines of some lengths.

One partition, behind a proxy that delays every byte. Records either come at their times whatever becomes of those
before (*paced*: Poisson arrivals, the same times for all settings), and what counts is how long each takes from then
until it is acknowledged; or as fast as the producer takes them (*saturating*), and what counts is how many are
acknowledged. Requests per second are what a setting costs, on both sides of the line. auto should be near the best of
all fixed settings on every line; which of those is the best differs from line to line.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any

from aioproducer import Delivery, KafkaProducer
from aioproducer.metrics import MetricsSnapshot
from benchmarks import alone
from benchmarks.arguments import numbers, positive
from benchmarks.environment import Environment
from benchmarks.far_broker import TOPIC, far_broker
from benchmarks.machine_cpu import MachineCpu
from benchmarks.plot import Chart, Series, svg

ROUND_TRIPS_MS = (1, 20, 50, 150)
WINDOWS = (5, 20, 50)
LINGERS_MS = (0, 5, 20, 100)
AUTO = "auto"
PACED, SATURATING = "paced", "saturating"

VALUE = bytes(200)
RATE = 1000
"""Records a second, paced: 200 kB/s, so that every line can carry it in batches of batch.size."""

WITHIN, WITHIN_MS = 0.1, 2.0
"""How much worse than the best fixed setting auto may be: a tenth, and what the timers of event loops round."""

TICK_MS = 0.1
"""The least that is drawn."""

BUFFER = 2 << 20
"""buffer.memory when saturating: more than any window holds, and not so much that it takes long to empty at the end."""


@dataclass(frozen=True)
class Line:
    arrivals: str
    round_trip_ms: int
    window: int


@dataclass(frozen=True)
class Figures:
    """One run. ``setting`` is linger.ms, or "auto". Latencies are from send to acknowledgement; None if saturating."""

    line: Line
    setting: str
    round: int
    records_per_s: float
    requests_per_s: float
    batch_bytes: float
    p50_ms: float | None
    p99_ms: float | None


def config_of(setting: str) -> dict[str, Any]:
    """auto may choose whatever the fixed settings choose among."""
    if setting == AUTO:
        return {"pipeline": AUTO, "linger_ms": max(LINGERS_MS)}
    return {"linger_ms": int(setting)}


async def measure(line: Line, setting: str, round_: int, seconds: float) -> Figures:
    """The measured time begins when five round trips have shown the line, and its windows, for what they are."""
    warm_up = 0.5 + 5 * line.round_trip_ms / 1000
    async with (
        far_broker(line.round_trip_ms, window=line.window) as broker,
        KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            max_in_flight_requests_per_connection=line.window,
            buffer_memory=BUFFER,
            **config_of(setting),
        ) as producer,
    ):
        for _ in range(2):  # the first of a producer id goes alone, and the answers tell the window
            await producer.send(TOPIC, VALUE)
        send = paced if line.arrivals == PACED else saturate
        latencies: list[float] = []
        sending = asyncio.create_task(send(producer, warm_up, seconds, round_, latencies))
        await asyncio.sleep(warm_up)
        begun, before = time.perf_counter(), producer.metrics()
        await asyncio.sleep(seconds)
        elapsed, after = time.perf_counter() - begun, producer.metrics()
        await sending
    batches = after["batch-total"] - before["batch-total"]
    sent = _bytes(after) - _bytes(before)
    latencies.sort()
    return Figures(
        line,
        setting,
        round_,
        (after["record-delivered-total"] - before["record-delivered-total"]) / elapsed,
        batches / elapsed,  # of one partition: a batch is a request
        sent / batches,
        latencies[len(latencies) // 2] if latencies else None,
        latencies[len(latencies) * 99 // 100] if latencies else None,
    )


def _bytes(metrics: MetricsSnapshot) -> float:
    return metrics.topic(TOPIC)["byte-total"]


async def paced(producer: KafkaProducer, warm_up: float, seconds: float, seed: int, latencies: list[float]) -> None:
    """Latencies, in milliseconds, are those of the records that come after the warm-up."""

    def note(came: float) -> Callable[[Delivery], object]:
        return lambda delivery: latencies.append((time.perf_counter() - came) * 1000)

    begun = time.perf_counter()
    for at in arrivals(Random(seed), warm_up + seconds):
        if (early := begun + at - time.perf_counter()) > 0:
            await asyncio.sleep(math.ceil(early * 1000) / 1000)
        delivery = producer.send(TOPIC, VALUE)
        if at >= warm_up:
            delivery.add_done_callback(note(begun + at))
    await producer.flush()


async def saturate(producer: KafkaProducer, warm_up: float, seconds: float, seed: int, latencies: list[float]) -> None:
    end = time.perf_counter() + warm_up + seconds
    while time.perf_counter() < end:
        _ = await producer.enqueue(TOPIC, VALUE)
    await producer.flush()


def arrivals(random: Random, seconds: float) -> Iterator[float]:
    """Seconds from the beginning."""
    at = 0.0
    while (at := at + random.expovariate(RATE)) < seconds:
        yield at


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    lines: Sequence[Line]
    settings: Sequence[str]
    rounds: int
    seconds: float
    figures: Sequence[Figures]

    def of(self, line: Line, setting: str, figure: str) -> float:
        """The median of all rounds."""
        runs = [one for one in self.figures if (one.line, one.setting) == (line, setting)]
        return float(median(getattr(one, figure) for one in runs))

    def fixed(self, line: Line, figure: str) -> list[float]:
        return [self.of(line, setting, figure) for setting in self.settings if setting != AUTO]

    def problems(self) -> list[str]:
        if AUTO not in self.settings or len(self.settings) == 1:
            return []
        return [problem for line in self.lines for problem in self._problems(line)]

    def _problems(self, line: Line) -> Iterator[str]:
        on = f"{line.arrivals}, {line.round_trip_ms} ms, window {line.window}"
        rate, most = self.of(line, AUTO, "records_per_s"), max(self.fixed(line, "records_per_s"))
        if rate < most * (1 - WITHIN):
            yield f"{on}: auto sends {rate:.0f} records/s, the best fixed setting {most:.0f}"
        if line.arrivals == SATURATING:
            return
        for figure in ("p50_ms", "p99_ms"):
            auto, least = self.of(line, AUTO, figure), min(self.fixed(line, figure))
            if auto > least * (1 + WITHIN) + WITHIN_MS:
                yield f"{on}: {figure[:3]} {auto:.1f} ms with auto, {least:.1f} ms with the best fixed setting"

    def plot(self) -> str:
        """What the 99th percentile takes beyond the round trip, for each window a chart."""
        paced = [line for line in self.lines if line.arrivals == PACED]
        windows = sorted({line.window for line in paced})
        return svg(*(self._chart(window, [line for line in paced if line.window == window]) for window in windows))

    def _chart(self, window: int, lines: Sequence[Line]) -> Chart:
        def beyond(line: Line, setting: str) -> float:
            return max(self.of(line, setting, "p99_ms") - line.round_trip_ms, TICK_MS)

        return Chart(
            f"{RATE:,} records/s, window {window}",
            "round trip, ms",
            "p99 until acknowledged, ms beyond the round trip",
            [
                Series(_name(setting), [(line.round_trip_ms, beyond(line, setting)) for line in lines])
                for setting in self.settings
            ],
        )

    def markdown(self) -> str:
        written = [f"- {name}: {value}" for name, value in self.environment.lines()]
        written += [
            "",
            f"One partition, records of {len(VALUE)} B; medians of {self.rounds} rounds of {self.seconds:g} s.",
        ]
        titles = {
            PACED: f"{RATE:,} records/s come: p50 / p99 in ms until acknowledged, and (requests/s × bytes a batch)",
            SATURATING: "As many as are taken: records/s, and (requests/s × bytes a batch)",
        }
        for name, title in titles.items():
            if lines := [line for line in self.lines if line.arrivals == name]:
                written += ["", title, "", *self._table(lines)]
        if problems := self.problems():
            written += ["", "### Problems", "", *(f"- {problem}" for problem in problems)]
        return "\n".join(written) + "\n"

    def _table(self, lines: Sequence[Line]) -> Iterator[str]:
        names = [_name(setting) for setting in self.settings]
        yield f"| round trip | window | {' | '.join(names)} |"
        yield "|---:|---:|" + "---:|" * len(names)
        for line in lines:
            cells = " | ".join(self._cell(line, setting) for setting in self.settings)
            yield f"| {line.round_trip_ms} ms | {line.window} | {cells} |"

    def _cell(self, line: Line, setting: str) -> str:
        cost = f"({self.of(line, setting, 'requests_per_s'):.0f} × {self.of(line, setting, 'batch_bytes'):.0f})"
        if line.arrivals == SATURATING:
            return f"{self.of(line, setting, 'records_per_s'):,.0f} {cost}"
        return f"{self.of(line, setting, 'p50_ms'):.1f} / {self.of(line, setting, 'p99_ms'):.1f} {cost}"


def _name(setting: str) -> str:
    return setting if setting == AUTO else f"linger {setting}"


async def pipeline(options: argparse.Namespace, told: Callable[[str], object]) -> Report:
    environment, cpu = Environment.now(loop=options.loop, broker="embedded, behind a slow line"), MachineCpu()
    lines = [
        Line(arrivals, round_trip, window)
        for arrivals in options.arrivals
        for round_trip in options.round_trips_ms
        for window in options.windows
    ]
    figures: list[Figures] = []
    for round_ in range(1, options.rounds + 1):
        for line in lines:
            for setting in options.settings:
                figures.append(await measure(line, setting, round_, options.seconds))
                told(f"{figures[-1]}")
    environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, lines, options.settings, options.rounds, options.seconds, figures)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks pipeline",
        description="Measures pipeline=auto beside fixed settings of linger.ms, over lines of some lengths.",
        epilog=f"Exit status 0: with auto no latency is more than {WITHIN:.0%} and {WITHIN_MS:g} ms above that of the "
        f"best fixed setting for that line, and no rate more than {WITHIN:.0%} below; 1: one is.",
    )
    every = [*map(str, LINGERS_MS), AUTO]
    parser.add_argument("--round-trips-ms", type=numbers, default=list(ROUND_TRIPS_MS), metavar="MS[,...]")
    parser.add_argument("--windows", type=numbers, default=list(WINDOWS), metavar="N[,...]")
    parser.add_argument("--settings", nargs="+", choices=every, default=every)
    parser.add_argument("--arrivals", nargs="+", choices=(PACED, SATURATING), default=[PACED, SATURATING])
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run, %(default)s")
    parser.add_argument("--rounds", type=positive, default=1, metavar="N", help="%(default)s, the medians count")
    alone.add_options(parser)
    alone.add_plot(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    return alone.report(pipeline, parse_arguments(arguments))
