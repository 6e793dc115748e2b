"""The cost of a record as work grows: the results, in tables and as a plot.

Along each axis one thing changes and nothing else. On an axis of numbers the growth of a record's cost is given as the
exponent of the power that fits best: 0 is flat, 1 is in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.comparison.case import Case
from benchmarks.comparison.figures import FIGURES
from benchmarks.comparison.report import NOTHING, Report, markdown_table
from benchmarks.harness.plot import Chart, Series
from benchmarks.harness.statistics import Spread
from benchmarks.harness.svg import svg
from benchmarks.works.curve_works import AXES, Axis

COST = FIGURES["cpu"]


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Of the power of x that fits (x, y) best, by least squares of their logarithms; None for fewer than two."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    slope: float = sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)
    return slope


@dataclass(frozen=True)
class Curves:
    """A report whose cases are points of axes."""

    report: Report
    axes: Sequence[Axis]

    def case(self, work: str) -> Case:
        return next(case for case in self.report.cases if case.work.name == work)

    def problems(self) -> list[str]:
        return self.report.problems()

    def clients(self, axis: Axis) -> list[str]:
        """Who can do anything there."""
        return [
            client.name for client in self.report.present if any(work.name in client.works for _, work in axis.points)
        ]

    def costs(self, axis: Axis, client: str) -> list[tuple[int | str, Spread]]:
        """CPU microseconds a record, at each point that the client has."""
        found = [(where, self.case(work.name).spread(client, COST)) for where, work in axis.points]
        return [(where, cost) for where, cost in found if cost is not None]

    def growth(self, axis: Axis, client: str) -> float | None:
        """The exponent; None where there is none."""
        return exponent([(where, cost.median) for where, cost in self.costs(axis, client) if isinstance(where, int)])

    def markdown(self) -> str:
        lines = [f"- {name}: {value}" for name, value in self.report.head()]
        for axis in self.axes:
            lines += ["", f"### {axis.title}", "", *self.table(axis)]
        lines += ["", f"Medians of {self.report.rounds} rounds; CPU in microseconds a record."]
        if problems := self.problems():
            lines += ["", "### Problems", "", *(f"- {problem}" for problem in problems)]
        return "\n".join(lines) + "\n"

    def table(self, axis: Axis) -> list[str]:
        clients = self.clients(axis)
        reference, *others = clients
        columns = [axis.name]
        columns += [f"{client}: {figure}" for client in clients for figure in ("records/s", "CPU")]
        columns += [f"{reference} ÷ {client}: {figure}" for client in others for figure in ("speed", "CPU")]
        rows = []
        for where, work in axis.points:
            case = self.case(work.name)
            cells = [f"{where:,}" if isinstance(where, int) else where]
            cells += [
                NOTHING if (spread := case.spread(client, FIGURES[name])) is None else FIGURES[name].text(spread.median)
                for client in clients
                for name in ("speed", "cpu")
            ]
            cells += [
                NOTHING if (ratio := case.ratio(reference, client, FIGURES[name])) is None else f"{ratio.median:.2f}"
                for client in others
                for name in ("speed", "cpu")
            ]
            rows.append(tuple(cells))
        growths = {client: self.growth(axis, client) for client in clients}
        if any(growth is not None for growth in growths.values()):
            cells = ["CPU grows as n to the"]
            for growth in growths.values():
                cells += ["", NOTHING if growth is None else f"{growth:.2f}"]
            rows.append((*cells, *("" for _ in range(2 * len(others)))))
        return markdown_table(tuple(columns), rows)

    def svg(self) -> str:
        """A record's cost along each axis of numbers, side by side."""
        return svg(*(self._chart(axis) for axis in self.axes if isinstance(axis.points[0][0], int)))

    def _chart(self, axis: Axis) -> Chart:
        lines = {client: self.costs(axis, client) for client in self.clients(axis)}
        return Chart(
            axis.name,
            axis.title,
            "CPU µs a record",
            [
                Series(client, [(where, cost.median) for where, cost in costs if isinstance(where, int)])
                for client, costs in lines.items()
                if costs
            ],
        )

    def json(self) -> dict[str, Any]:
        return {"axes": [axis.name for axis in self.axes], **self.report.json()}

    @classmethod
    def from_json(cls, results: dict[str, Any]) -> Self:
        """The curves that ``json`` was made of."""
        return cls(Report.from_json(results), [AXES[name] for name in results["axes"]])
