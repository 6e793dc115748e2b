"""``python -m benchmarks pipeline``: pipeline=auto beside fixed settings of linger.ms, over lines of some lengths.

The broker is behind a proxy that delays every byte; with ``--virtual`` both are simulated, so that nothing counts but
the producer's rules, and figures are the same on every machine. Records either come at their times whatever becomes of
those before (*paced*: Poisson arrivals, the same times for all settings), and what counts is how long each takes from
then until it is acknowledged; or as fast as the producer takes them (*saturating*), and what counts is how many are
acknowledged. Requests per second are what a setting costs, on both sides of the line. auto should be near the best of
all fixed settings on every line; which of those is the best differs from line to line.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.harness import command
from benchmarks.harness.arguments import numbers, positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.plot import Chart, Series
from benchmarks.harness.svg import svg
from benchmarks.pipelining.pipeline_run import (
    AUTO,
    LINGERS_MS,
    PACED,
    RATE,
    SATURATING,
    VALUE,
    Figures,
    Line,
    measure,
    simulate,
)

ROUND_TRIPS_MS = (1, 20, 50, 150)
WINDOWS = (5, 20, 50)

WITHIN, WITHIN_MS = 0.1, 2.0
"""How much worse than the best fixed setting auto may be: a tenth, and what the timers of event loops round."""

TICK_MS = 0.1
"""The least that is drawn."""


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

    def verdicts(self) -> list[Verdict]:
        """Of each figure on the line where auto is the worst beside the best fixed setting; none without either."""
        if AUTO not in self.settings or len(self.settings) == 1:
            return []
        return [*self._rate(), *(one for figure in ("p50_ms", "p99_ms") for one in self._latency(figure))]

    def _rate(self) -> Iterator[Verdict]:
        best = {line: max(self.fixed(line, "records_per_s")) for line in self.lines}
        auto = {line: self.of(line, AUTO, "records_per_s") for line in self.lines}
        worst = min(self.lines, key=lambda line: auto[line] / best[line])
        yield Verdict(
            f"auto's rate ≥ {1 - WITHIN:g} of the best linger's, on every line",
            f"least: {auto[worst]:,.0f} of {best[worst]:,.0f} records/s ({_on(worst)})",
            auto[worst] >= best[worst] * (1 - WITHIN),
        )

    def _latency(self, figure: str) -> Iterator[Verdict]:
        paced = [line for line in self.lines if line.arrivals == PACED]
        best = {line: min(self.fixed(line, figure)) for line in paced}
        auto = {line: self.of(line, AUTO, figure) for line in paced}
        allowed = {line: least * (1 + WITHIN) + WITHIN_MS for line, least in best.items()}
        if paced:
            worst = max(paced, key=lambda line: auto[line] / allowed[line])
            yield Verdict(
                f"auto's {figure[:3]} ≤ the best linger's + {WITHIN:.0%} + {WITHIN_MS:g} ms, on every line",
                f"most: {auto[worst]:.1f} ms beside {best[worst]:.1f} ms ({_on(worst)})",
                auto[worst] <= allowed[worst],
            )

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

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

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        rounds = "one round" if self.rounds == 1 else f"medians of {self.rounds} rounds"
        tables = [
            f"{_partitions(self.lines[0].partitions)}, records of {len(VALUE)} B; {rounds} of {self.seconds:g} s.",
        ]
        titles = {
            PACED: f"{RATE:,} records/s come: p50 / p99 in ms until acknowledged, and (requests/s × bytes a batch)",
            SATURATING: "As many as are taken: records/s, and (requests/s × bytes a batch)",
        }
        for name, title in titles.items():
            if lines := [line for line in self.lines if line.arrivals == name]:
                tables += ["", title, "", *self._table(lines)]
        verdicts = self.verdicts()
        return [*tables, "", *Verdict.table(verdicts)] if verdicts else tables

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())

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


def _partitions(number: int) -> str:
    return "One partition" if number == 1 else f"{number} partitions in turn"


def _on(line: Line) -> str:
    return f"{line.arrivals}, {line.round_trip_ms} ms, window {line.window}"


def _name(setting: str) -> str:
    return setting if setting == AUTO else f"linger {setting}"


async def pipeline(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    broker = "embedded, in virtual time" if options.virtual else "embedded, behind a slow line"
    environment, cpu = Environment.now(loop="asyncio" if options.virtual else options.loop, broker=broker), MachineCpu()
    lines = [
        Line(arrivals, round_trip, window, options.partitions)
        for arrivals in options.arrivals
        for round_trip in options.round_trips_ms
        for window in options.windows
    ]
    figures: list[Figures] = []
    for round_ in range(1, options.rounds + 1):
        for line in lines:
            for setting in options.settings:
                run = line, setting, round_, options.seconds
                figures.append(await (asyncio.to_thread(simulate, *run) if options.virtual else measure(*run)))
                progress(f"{figures[-1]}")
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
    parser.add_argument("--partitions", type=positive, default=1, metavar="N", help="%(default)s")
    parser.add_argument("--virtual", action="store_true", help="simulate the line and the broker, in virtual time")
    parser.add_argument("--settings", nargs="+", choices=every, default=every)
    parser.add_argument("--arrivals", nargs="+", choices=(PACED, SATURATING), default=[PACED, SATURATING])
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run, %(default)s")
    parser.add_argument("--rounds", type=positive, default=1, metavar="N", help="%(default)s, the medians count")
    command.add_options(parser)
    command.add_plot(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    return command.report(pipeline, parse_arguments(arguments))
