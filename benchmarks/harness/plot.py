"""Charts of lines on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.harness.svg import BOTTOM, COLORS, GRID, HEIGHT, LEFT, LEGEND, RIGHT, TOP, WIDTH, line, text


@dataclass(frozen=True)
class Series:
    """A line through points; ``dashed`` without marks, for what is compared with."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Both axes are logarithmic, so that a factor looks the same everywhere; the x of the first series are written."""

    title: str
    x: str
    y: str
    series: Sequence[Series]

    def svg(self, left: float = 0.0) -> Iterator[str]:
        """The lines of a group, moved to the right by ``left``."""
        across = _Axis([x for one in self.series for x, _ in one.points], LEFT, WIDTH - RIGHT)
        top = TOP + LEGEND * math.ceil(len(self.series) / 2)
        up = _Axis([y for one in self.series for _, y in one.points], HEIGHT - BOTTOM, top)
        yield f'<g transform="translate({left:g})">'
        yield text(WIDTH / 2, 20, self.title, weight="bold")
        yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, self.x)
        yield text(14, (top + HEIGHT - BOTTOM) / 2, self.y, turned=True)
        for value in sorted({x for x, _ in self.series[0].points}):
            yield line(across(value), top, across(value), HEIGHT - BOTTOM, GRID)
            yield text(across(value), HEIGHT - BOTTOM + 16, f"{value:g}")
        for value in up.ticks():
            yield line(LEFT, up(value), WIDTH - RIGHT, up(value), GRID)
            yield text(LEFT - 6, up(value) + 4, f"{value:g}", anchor="end")
        for number, one in enumerate(self.series):
            yield from self._series(one, COLORS[number % len(COLORS)], number, across, up)
        yield "</g>"

    def _series(self, one: Series, color: str, number: int, across: _Axis, up: _Axis) -> Iterator[str]:
        places = [(across(x), up(y)) for x, y in sorted(one.points)]
        dash = ' stroke-dasharray="5 4"' if one.dashed else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>'
        if not one.dashed:
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in places)
        column, row = number % 2, number // 2
        left, middle = LEFT + column * (WIDTH - LEFT) / 2, TOP + LEGEND * row
        ends = f'x1="{left:g}" y1="{middle:g}" x2="{left + 20:g}" y2="{middle:g}"'
        yield f'<line {ends} stroke="{color}" stroke-width="2"{dash}/>'
        yield text(left + 26, middle + 4, one.name, anchor="start")


class _Axis:
    """Where values are between two ends, by their logarithm."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self._low, self._high = min(values), max(values)
        if self._low <= 0:
            raise ValueError(f"a logarithmic axis has no place for {self._low:g}")
        if self._low == self._high:
            self._low, self._high = self._low / 2, self._high * 2
        self._begin, self._end = begin, end

    def __call__(self, value: float) -> float:
        part = math.log(value / self._low) / math.log(self._high / self._low)
        return self._begin + part * (self._end - self._begin)

    def ticks(self) -> list[float]:
        """1, 2 and 5 times the powers of ten that it has; of more than two decades the powers alone."""
        decades = range(math.floor(math.log10(self._low)), math.ceil(math.log10(self._high)) + 1)
        steps = (1,) if self._high / self._low > 100 else (1, 2, 5)
        return [
            value for decade in decades for step in steps if self._low <= (value := step * 10.0**decade) <= self._high
        ]
