"""Metrics as text, for people: a block for each group, node and topic, a line for each metric."""

from __future__ import annotations

import math
from collections.abc import Iterable

from aioproducer.errors.printable import printable


def text_table(blocks: Iterable[tuple[str, list[tuple[str, float]]]]) -> str:
    """``blocks`` are headings with names and values; all values stand in one column."""
    shown = [(printable(heading), [(name, _number(value)) for name, value in rows]) for heading, rows in blocks]
    names = max((len(name) for _, rows in shown for name, _ in rows), default=0)
    numbers = max((len(number) for _, rows in shown for _, number in rows), default=0)
    return "\n\n".join(
        "\n".join([heading, *(f"  {name:<{names}}  {number:>{numbers}}" for name, number in rows)])
        for heading, rows in shown
    )


def _number(value: float) -> str:
    """Whole numbers as such, others with three decimals; a dash where there is no value yet."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
