"""Tells callers of ``flush`` when the records that were parked before it are no longer parked."""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol, final


class Waiter(Protocol):
    """The parts of a future used here."""

    def done(self) -> bool: ...

    def set_result(self, result: None, /) -> None: ...


@final
class Departures:
    """Records have increasing numbers. A step costs the same however many records are parked."""

    def __init__(self) -> None:
        self._newest: list[int] = []
        """For each moment at which somebody began to wait, the number of the newest record."""
        self._left: list[int] = []
        """How many are still parked of those between it and the moment before."""
        self._waiters: list[list[Waiter]] = []
        self._counted = 0
        """All of these together."""

    def wait(self, newest: int, parked: int, waiter: Waiter) -> None:
        """``waiter`` is done when none of the ``parked`` records is parked any more; ``newest`` is the last number."""
        if not self._newest or self._newest[-1] < newest:
            self._newest.append(newest)
            self._left.append(parked - self._counted)
            self._waiters.append([])
            self._counted = parked
        self._waiters[-1].append(waiter)

    def departed(self, number: int) -> None:
        """The record of this number is no longer parked."""
        place = bisect_left(self._newest, number)
        if place == len(self._newest):
            return  # it is younger than all that somebody waits for
        self._left[place] -= 1
        self._counted -= 1
        while self._left and self._left[0] == 0:
            del self._newest[0], self._left[0]
            for waiter in self._waiters.pop(0):
                if not waiter.done():
                    waiter.set_result(None)
