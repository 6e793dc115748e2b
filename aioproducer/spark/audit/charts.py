"""The report's plots: lines over time, and bars of counts, on linear axes from 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from aioproducer.svg import BOTTOM, COLORS, GRID, HEIGHT, LEFT, LEGEND, RIGHT, TOP, WIDTH, line, text

_TIMES = 5
"""Moments that are written below a plot, at most."""


@dataclass(frozen=True)
class TimeLines:
    """Lines through (milliseconds since the epoch, value); x is written as UTC."""

    title: str
    y: str
    series: Sequence[tuple[str, Sequence[tuple[int, float]]]]

    def svg(self, left: float = 0.0) -> Iterator[str]:
        times = sorted({time for _, points in self.series for time, _ in points})
        top = TOP + LEGEND * math.ceil(len(self.series) / 2)
        most = ceiling(max((value for _, points in self.series for _, value in points), default=0.0))
        first, last = times[0], max(times[-1], times[0] + 1)

        def across(time: int) -> float:
            return LEFT + (WIDTH - RIGHT - LEFT) * (time - first) / (last - first)

        def up(value: float) -> float:
            return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - top) * value / most

        yield f'<g transform="translate({left:g})">'
        yield text(WIDTH / 2, 20, self.title, weight="bold")
        yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, f"{datetime.fromtimestamp(first / 1000, UTC):%Y-%m-%d} UTC")
        yield text(14, (top + HEIGHT - BOTTOM) / 2, self.y, turned=True)
        for time in times[:: max(1, math.ceil(len(times) / _TIMES))]:
            yield text(across(time), HEIGHT - BOTTOM + 16, f"{datetime.fromtimestamp(time / 1000, UTC):%H:%M}")
        yield from _grid(most, up)
        for number, (name, points) in enumerate(self.series):
            color = COLORS[number % len(COLORS)]
            places = " ".join(f"{across(time):.1f},{up(value):.1f}" for time, value in sorted(points))
            yield f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="2"/>'
            if len(points) == 1:
                time, value = points[0]
                yield f'<circle cx="{across(time):.1f}" cy="{up(value):.1f}" r="3.5" fill="{color}"/>'
            column, row = number % 2, number // 2
            begin, middle = LEFT + column * (WIDTH - LEFT) / 2, TOP + LEGEND * row
            yield line(begin, middle, begin + 20, middle, color)
            yield text(begin + 26, middle + 4, name, anchor="start")
        yield "</g>"


@dataclass(frozen=True)
class Columns:
    """A bar for each (name, value); names are written where there is room."""

    title: str
    x: str
    y: str
    bars: Sequence[tuple[str, float]]

    def svg(self, left: float = 0.0) -> Iterator[str]:
        most = ceiling(max((value for _, value in self.bars), default=0.0))
        width = (WIDTH - RIGHT - LEFT) / max(1, len(self.bars))
        every = max(1, math.ceil(30 / width))

        def up(value: float) -> float:
            return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / most

        yield f'<g transform="translate({left:g})">'
        yield text(WIDTH / 2, 20, self.title, weight="bold")
        yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, self.x)
        yield text(14, (TOP + HEIGHT - BOTTOM) / 2, self.y, turned=True)
        yield from _grid(most, up)
        for number, (name, value) in enumerate(self.bars):
            begin = LEFT + number * width
            height = HEIGHT - BOTTOM - up(value)
            yield (
                f'<rect x="{begin + width * 0.1:.1f}" y="{up(value):.1f}" width="{width * 0.8:.1f}" '
                f'height="{height:.1f}" fill="{COLORS[0]}"/>'
            )
            if number % every == 0:
                yield text(begin + width / 2, HEIGHT - BOTTOM + 16, name)
        yield "</g>"


def _grid(most: float, up: Callable[[float], float]) -> Iterator[str]:
    for part in range(6):
        value = most * part / 5
        yield line(LEFT, up(value), WIDTH - RIGHT, up(value), GRID)
        yield text(LEFT - 6, up(value) + 4, short(value), anchor="end")


def ceiling(value: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is as large."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def short(value: float) -> str:
    """A number in at most four signs or so: ``1.5 M``."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
