"""Parked records that wait for the same thing, oldest first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final, final

from aioproducer.producer.parking.parked_record import ParkedRecord

_SPARE: Final = 64
"""The number of stale entries always kept: tidying a short line is not worth it."""


@final
class WaitingLine:
    """A record may leave from anywhere, and an older one enters before younger ones. Both take constant time, but for
    the logarithm of a heap: thousands of callers may be cancelled together.
    """

    def __init__(self) -> None:
        self.records: dict[int, ParkedRecord] = {}
        """By number; public, so that the check for waiting records costs no call."""
        self._numbers: list[int] = []
        """A heap. A number stays when its record leaves, until it is first or stale numbers are the majority."""

    def __len__(self) -> int:
        return len(self.records)

    def occupied(self) -> bool:
        return len(self.records) > 0

    def __contains__(self, record: object) -> bool:
        return isinstance(record, ParkedRecord) and self.records.get(record.number) is record

    def __iter__(self) -> Iterator[ParkedRecord]:
        """A copy of the line, oldest first."""
        return iter([self.records[number] for number in sorted(self.records)])

    def first(self) -> ParkedRecord:
        """The oldest; IndexError if the line is empty."""
        numbers = self._numbers
        while numbers[0] not in self.records:
            heapq.heappop(numbers)
        return self.records[numbers[0]]

    def last(self) -> ParkedRecord:
        """The one that joined last, however old it is; IndexError if the line is empty."""
        for record in reversed(self.records.values()):
            return record
        raise IndexError("nobody waits")

    def add(self, record: ParkedRecord) -> None:
        self.records[record.number] = record
        heapq.heappush(self._numbers, record.number)

    def remove(self, record: ParkedRecord) -> None:
        """Removes a record; KeyError if it is not in the line."""
        del self.records[record.number]
        if len(self._numbers) > 2 * len(self.records) + _SPARE:
            self._numbers = sorted(self.records)
