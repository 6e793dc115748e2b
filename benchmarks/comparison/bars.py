"""Bars as a part of an SVG: how many times a figure is another's, on a logarithmic scale around 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.harness.statistics import Spread
from benchmarks.harness.svg import BOTTOM, COLORS, GRID, HEIGHT, TOP, WIDTH, line, text

NAMES = 150
"""Pixels for the names."""
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Bars:
    """A bar for each (name, ratio) from 1 to its median, with a whisker from the least to the most."""

    title: str
    x: str
    ratios: Sequence[tuple[str, Spread]]

    def svg(self, left: float = 0.0) -> Iterator[str]:
        """The lines of a group, moved to the right by ``left``."""
        low = min(0.5, *(ratio.least for _, ratio in self.ratios))
        high = max(2.0, *(ratio.most for _, ratio in self.ratios))

        def across(value: float) -> float:
            return NAMES + (WIDTH - 24 - NAMES) * math.log(value / low) / math.log(high / low)

        yield f'<g transform="translate({left:g})">'
        yield text(WIDTH / 2, 20, self.title, weight="bold")
        yield text((NAMES + WIDTH) / 2, HEIGHT - 10, self.x)
        for tick in TICKS:
            if low <= tick <= high:
                yield line(across(tick), TOP, across(tick), HEIGHT - BOTTOM, "#8c959f" if tick == 1 else GRID)
                yield text(across(tick), HEIGHT - BOTTOM + 16, f"{tick:g}")
        height = (HEIGHT - BOTTOM - TOP) / len(self.ratios)
        for number, (name, ratio) in enumerate(self.ratios):
            middle = TOP + (number + 0.5) * height
            begin, end = sorted((across(1), across(ratio.median)))
            yield (
                f'<rect x="{begin:.1f}" y="{middle - height / 4:.1f}" width="{end - begin:.1f}" '
                f'height="{height / 2:.1f}" fill="{COLORS[0]}"/>'
            )
            yield line(across(ratio.least), middle, across(ratio.most), middle, "#1f2328")
            yield text(NAMES - 8, middle + 4, name, anchor="end")
            yield text(across(ratio.most) + 3, middle - height / 4, f"{ratio.median:.2g}", anchor="start")
        yield "</g>"
