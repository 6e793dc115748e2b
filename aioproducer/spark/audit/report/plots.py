"""The data of the plots, as JSON in the page; ``static/report.js`` draws them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class TimeLines:
    """A line for each series, through (milliseconds since the epoch, value). Times are shown in UTC."""

    title: str
    unit: str
    series: Sequence[tuple[str, Sequence[tuple[int, float]]]]

    def html(self) -> Iterator[str]:
        times = sorted({time for _, points in self.series for time, _ in points})
        values = [dict(points) for _, points in self.series]
        data = [[time / 1000 for time in times], *([one.get(time) for time in times] for one in values)]
        yield from _figure(self.title, "lines", [name for name, _ in self.series], self.unit, data)


@dataclass(frozen=True)
class Bars:
    """A bar for each (number, value); ``x`` says what the numbers are."""

    title: str
    x: str
    y: str
    bars: Sequence[tuple[int, float]]

    def html(self) -> Iterator[str]:
        bars = sorted(self.bars)
        data = [[number for number, _ in bars], [value for _, value in bars]]
        yield from _figure(self.title, "bars", [self.y], "", data, x=self.x)


def _figure(title: str, kind: str, series: Sequence[str], unit: str, data: Any, **more: str) -> Iterator[str]:
    plot = {"kind": kind, "series": series, "unit": unit, **more, "data": data}
    yield f"<figure><figcaption>{escape(title)}</figcaption>"
    # A script ends at the first "</script", wherever that stands.
    text = json.dumps(plot, separators=(",", ":")).replace("<", "\\u003c")
    yield f'<script type="application/json">{text}</script>'
    yield "<noscript>The plot needs JavaScript.</noscript></figure>"
