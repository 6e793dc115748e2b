"""A value over time, as far as it is remembered."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Generic, TypeVar

V = TypeVar("V")

REMEMBERED = 16
"""Values a timeline keeps."""


class ValueHistory(Generic[V]):
    """A value and its last changes. Before the first change it always had that change's value."""

    __slots__ = ("_changes", "_forgotten")

    def __init__(self, value: V) -> None:
        self._changes: list[tuple[float, V]] = [(-math.inf, value)]
        self._forgotten = False

    @property
    def value(self) -> V:
        return self._changes[-1][1]

    def change(self, now: float, value: V) -> None:
        """Sets the value from ``now`` on, which must not be earlier than the last change."""
        changes = self._changes
        if value == changes[-1][1]:
            return
        changes.append((now, value))
        if len(changes) > REMEMBERED:
            del changes[0]
            self._forgotten = True

    def spans(self, start: float, end: float) -> Iterator[tuple[V | None, float]]:
        """(value, until when) from ``start`` to ``end`` without gaps; None where the value is forgotten."""
        changes = self._changes
        if end <= start:
            return
        if self._forgotten and start < changes[0][0]:
            yield None, min(changes[0][0], end)
        place = len(changes) - 1  # most callers need only the last ones
        while place > 0 and changes[place][0] > start:
            place -= 1
        until = max(start, changes[place][0])
        while until < end:
            value = changes[place][1]
            place += 1
            until = changes[place][0] if place < len(changes) else end
            yield value, min(until, end)
