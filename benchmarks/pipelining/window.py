"""``python -m benchmarks window``: records per second over a long line, by the in-flight window (KIP-1269).

One partition, one record a batch: each batch waits a round trip for its answer, and as many are under way as the window
allows, so the rate should be window ÷ round trip. Windows above 5 need a broker that announces them: the embedded one,
behind a proxy that delays every byte. A window up to 5 is set by max.in.flight.requests.per.connection, as anywhere.

A rate is all records by the time from before the first is sent until the last is acknowledged, the filling of the line
at the beginning and its emptying at the end included. The round trip that it is compared with is the one the line was
set to, which leaves out what the proxy itself and the system's sockets add; a measured ping is reported beside it.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from aioproducer import KafkaProducer, wait_all
from benchmarks.harness import command
from benchmarks.harness.arguments import numbers, positive
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.plot import Chart, Series
from benchmarks.harness.svg import svg
from benchmarks.pipelining.far_broker import TOPIC, far_broker

WINDOWS = (1, 5, 10, 20, 50)
WITHIN = 0.03
"""How far from window ÷ round trip a rate may be."""

ROUND_TRIPS = 40
"""A run lasts about as many seconds. At first all of a window leaves and returns at once; later it spreads."""

VALUE = bytes(1000)


@dataclass(frozen=True)
class Rate:
    """One run. ``round_trip_ms`` is what the line was set to, ``ping_ms`` what a byte took; ``expected`` goes by the
    first."""

    window: int
    round: int
    round_trip_ms: float
    ping_ms: float
    records: int
    records_per_s: float

    @property
    def expected(self) -> float:
        return self.window / self.round_trip_ms * 1000

    @property
    def share(self) -> float:
        return self.records_per_s / self.expected


async def measure(window: int, round_: int, round_trip_ms: float) -> Rate:
    async with (
        far_broker(round_trip_ms, window=window) as broker,
        KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            batch_size=0,  # one record a batch
            linger_ms=0,
            max_in_flight_requests_per_connection=window,
        ) as producer,
    ):
        for _ in range(2):  # the first batch of a producer id is sent alone; the answers have the window
            await producer.send(TOPIC, VALUE)
        records = window * ROUND_TRIPS
        begun = time.perf_counter()
        deliveries = [await producer.enqueue(TOPIC, VALUE) for _ in range(records)]
        await wait_all(deliveries)
        elapsed = time.perf_counter() - begun
        for delivery in deliveries:
            delivery.result()
    return Rate(window, round_, round_trip_ms, broker.ping_ms, records, records / elapsed)


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    windows: Sequence[int]
    round_trip_ms: float
    rounds: int
    rates: Sequence[Rate]

    def rate(self, window: int) -> float:
        return median(rate.records_per_s for rate in self.rates if rate.window == window)

    def share(self, window: int) -> float:
        return median(rate.share for rate in self.rates if rate.window == window)

    def ping_ms(self, window: int) -> float:
        return median(rate.ping_ms for rate in self.rates if rate.window == window)

    def verdicts(self) -> list[command.Verdict]:
        return [
            command.Verdict(
                f"window {window}: within {WITHIN:.0%} of window ÷ round trip",
                f"{self.share(window):.1%}",
                abs(self.share(window) - 1) <= WITHIN,
            )
            for window in self.windows
        ]

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def plot(self) -> str:
        return svg(
            Chart(
                f"One record of {len(VALUE)} B a batch, one partition, {self.round_trip_ms:g} ms there and back",
                "window: batches under way",
                "records/s",
                [
                    Series("aioproducer", [(window, self.rate(window)) for window in self.windows]),
                    Series(
                        "window ÷ round trip",
                        [(window, window / self.round_trip_ms * 1000) for window in self.windows],
                        dashed=True,
                    ),
                ],
            )
        )

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"One partition, one record of {len(VALUE):,} B a batch, a line set to {self.round_trip_ms:g} ms there and "
            f"back; medians of {self.rounds} rounds.",
            "",
            "| window | measured ping | records/s | window ÷ round trip | share | ratio to window 1 |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        one = self.rate(1) if 1 in self.windows else None
        for window in self.windows:
            expected = window / self.round_trip_ms * 1000
            ratio = "" if one is None else f"{self.rate(window) / one:.2f}"
            lines.append(
                f"| {window} | {self.ping_ms(window):.1f} ms | {self.rate(window):.2f} | {expected:.2f} "
                f"| {self.share(window):.1%} | {ratio} |"
            )
        return [*lines, "", *command.Verdict.table(self.verdicts())]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


async def window(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment, cpu = Environment.now(loop=options.loop, broker="embedded, behind a slow line"), MachineCpu()
    rates: list[Rate] = []
    for round_ in range(1, options.rounds + 1):
        for size in options.windows:
            rates.append(await measure(size, round_, options.round_trip_ms))
            progress(f"round {round_}, window {size}: {rates[-1].records_per_s:.2f} records/s, {rates[-1].share:.1%}")
    environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, options.windows, options.round_trip_ms, options.rounds, rates)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks window",
        description="Measures records per second over a long line by the in-flight window.",
        epilog=f"Exit status 0: every rate is within {WITHIN:.0%} of window ÷ round trip; 1: one is not.",
    )
    parser.add_argument("--windows", type=numbers, default=list(WINDOWS), metavar="N[,...]")
    parser.add_argument("--round-trip-ms", type=float, default=150.0, metavar="MS", help="%(default)s")
    parser.add_argument(
        "--rounds", type=positive, default=3, metavar="N", help="%(default)s, of which the medians count"
    )
    command.add_options(parser)
    command.add_plot(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    return command.report(window, parse_arguments(arguments))
