"""What goes over lines of some lengths: the results, in tables and as a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.comparison.case import Case
from benchmarks.comparison.figures import FIGURES
from benchmarks.comparison.report import NOTHING, Report, markdown_table
from benchmarks.harness.plot import Chart, Series
from benchmarks.harness.svg import svg
from benchmarks.works.line_works import RECORD_SIZE

SPARE = 3
"""A line that carries less than this multiple of a figure may have part in it."""


@dataclass(frozen=True)
class Lines:
    """A report whose works are over lines; ``carried`` is what those carry, in MB/s by milliseconds there and back."""

    report: Report
    carried: dict[int, float]

    def problems(self) -> list[str]:
        return self.report.problems()

    def markdown(self) -> str:
        lines = [f"- {name}: {value}" for name, value in self.report.head()]
        lines += ["", *self.tables()]
        if problems := self.problems():
            lines += ["", "### Problems", "", *(f"- {problem}" for problem in problems)]
        return "\n".join(lines) + "\n"

    def tables(self, heading: str = "###") -> list[str]:
        """All figures, as lines of Markdown, under headings of this kind."""
        lines: list[str] = []
        for partitions, cases in self._by_partitions().items():
            lines += [
                f"{heading} {_named(partitions)}",
                "",
                "MB/s:",
                "",
                *self._table(cases, self._speed, carried=True),
                "",
                "Produce requests/s × KiB a batch, and how many requests are under way (requests/s × round trip):",
                "",
                *self._table(cases, self._wire),
                "",
                "CPU µs/record:",
                "",
                *self._table(cases, self._cpu),
                "",
            ]
        return [
            *lines,
            f"Medians of {self.report.rounds} rounds. \\* More than a third of what the line carries by itself.",
        ]

    def _table(self, cases: Sequence[Case], cell: Callable[[Case, str], str], *, carried: bool = False) -> list[str]:
        clients = [client.name for client in self.report.present]
        rows = [
            (
                f"{case.work.round_trip_ms} ms",
                *(cell(case, client) for client in clients),
                *([f"{self.carried[case.work.round_trip_ms]:,.0f}"] if carried else []),
            )
            for case in cases
        ]
        return markdown_table(("round trip", *clients, *(["the line carries"] if carried else [])), rows)

    def _speed(self, case: Case, client: str) -> str:
        speed = self.megabytes(case, client)
        if speed is None:
            return NOTHING
        mark = "\\*" if SPARE * speed > self.carried[case.work.round_trip_ms] else ""
        return f"{speed:,.1f}{mark}"

    def _wire(self, case: Case, client: str) -> str:
        requests, batch = case.spread(client, FIGURES["requests"]), case.spread(client, FIGURES["batch"])
        if requests is None or batch is None:
            return NOTHING
        under_way = requests.median * case.work.round_trip_ms / 1000
        return f"{requests.median:,.0f} × {batch.median:,.0f} ({under_way:.1f})"

    def _cpu(self, case: Case, client: str) -> str:
        cpu = case.spread(client, FIGURES["cpu"])
        return NOTHING if cpu is None else FIGURES["cpu"].text(cpu.median)

    @staticmethod
    def megabytes(case: Case, client: str) -> float | None:
        """A second."""
        speed = case.spread(client, FIGURES["speed"])
        return None if speed is None else speed.median * RECORD_SIZE / 1e6

    def _by_partitions(self) -> dict[int, list[Case]]:
        numbers = dict.fromkeys(case.work.partitions for case in self.report.cases)
        return {number: [case for case in self.report.cases if case.work.partitions == number] for number in numbers}

    def svg(self) -> str:
        """MB/s by the round trip, side by side for one partition and six."""
        return svg(*(self._chart(partitions, cases) for partitions, cases in self._by_partitions().items()))

    def _chart(self, partitions: int, cases: Sequence[Case]) -> Chart:
        series = []
        for client in self.report.present:
            found = [(case.work.round_trip_ms, self.megabytes(case, client.name)) for case in cases]
            if points := [(where, speed) for where, speed in found if speed is not None]:
                series.append(Series(client.name, points))
        return Chart(f"{_named(partitions)}, records of 1,000 B", "round trip in ms", "MB/s", series)

    def json(self) -> dict[str, Any]:
        return {"carried": {str(far): speed for far, speed in self.carried.items()}, **self.report.json()}

    @classmethod
    def from_json(cls, results: dict[str, Any]) -> Self:
        """The lines that ``json`` was made of."""
        return cls(Report.from_json(results), {int(far): speed for far, speed in results["carried"].items()})


def _named(partitions: int) -> str:
    return "one partition" if partitions == 1 else f"{partitions} partitions"
