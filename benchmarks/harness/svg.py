"""Pieces of SVG for plots: the same for the same figures, and without a library."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Protocol

COLORS = ("#0969da", "#cf222e", "#1a7f37", "#8250df", "#bf8700", "#57606a")
GRID = "#e4e8ec"
WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 40, 46
"""What is left free around the plot itself: for figures, words, and a title."""

LEGEND = 16
"""The height of a line of the legend, which stands above the plot."""


class Drawn(Protocol):
    """What has a place of WIDTH and HEIGHT in a picture."""

    def svg(self, left: float = 0.0) -> Iterator[str]:
        """The lines of a group, moved to the right by ``left``."""


def svg(*charts: Drawn) -> str:
    """The charts side by side."""
    width = WIDTH * len(charts)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#1f2328">',
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
        *(line for number, chart in enumerate(charts) for line in chart.svg(number * WIDTH)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def line(x1: float, y1: float, x2: float, y2: float, color: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"/>'


def text(x: float, y: float, words: str, *, anchor: str = "middle", weight: str = "", turned: bool = False) -> str:
    more = f' font-weight="{weight}"' if weight else ""
    more += f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'
