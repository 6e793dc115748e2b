"""Parked records that wait for the same thing, oldest first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final, final

from aioproducer.producer.parking.parked_record import ParkedRecord

_SPARE: Final = 64
"""Numbers of records that have left which are kept in any case: tidying up a short line is not worth it."""


@final
class WaitingLine:
    """A record may leave from anywhere, and one that is older than others enters before them.

    Neither takes longer in a long line than in a short one, but for the logarithm of a heap: thousands of callers may
    be cancelled together.
    """

    def __init__(self) -> None:
        self.records: dict[int, ParkedRecord] = {}
        """By number: to be read, for whoever asks with every request whether there are any."""
        self._numbers: list[int] = []
        """A heap. A number stays when its record leaves, until it is the first or such numbers are the most."""

    def __len__(self) -> int:
        return len(self.records)

    def __contains__(self, record: object) -> bool:
        return isinstance(record, ParkedRecord) and self.records.get(record.number) is record

    def __iter__(self) -> Iterator[ParkedRecord]:
        """All of them as they are now, whatever becomes of the line meanwhile."""
        return iter([self.records[number] for number in sorted(self.records)])

    def first(self) -> ParkedRecord:
        """The oldest; IndexError if nobody waits."""
        numbers = self._numbers
        while numbers[0] not in self.records:
            heapq.heappop(numbers)
        return self.records[numbers[0]]

    def last(self) -> ParkedRecord:
        """The one that has waited here for the shortest time, however old it is; IndexError if nobody waits."""
        for record in reversed(self.records.values()):
            return record
        raise IndexError("nobody waits")

    def add(self, record: ParkedRecord) -> None:
        self.records[record.number] = record
        heapq.heappush(self._numbers, record.number)

    def remove(self, record: ParkedRecord) -> None:
        """KeyError if it is not there."""
        del self.records[record.number]
        if len(self._numbers) > 2 * len(self.records) + _SPARE:
            self._numbers = sorted(self.records)
