"""The open and aborted transactions of a partition (Kafka's ``TransactionIndex``, and the part of
``ProducerStateManager`` that finds the first unstable offset)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class AbortedTransaction(NamedTuple):
    """The records of ``producer_id`` from ``first_offset`` up to its marker at ``last_offset`` are aborted."""

    producer_id: int
    first_offset: int
    last_offset: int


class TransactionIndex:
    """Open transactions by producer id, and aborted transactions in the order of their markers."""

    def __init__(self) -> None:
        self._first_offsets: dict[int, int] = {}
        self._aborted: list[AbortedTransaction] = []

    def wrote(self, producer_id: int, first_offset: int) -> None:
        """A batch of a transaction was appended."""
        self._first_offsets.setdefault(producer_id, first_offset)

    def ended(self, producer_id: int, marker_offset: int, *, committed: bool) -> None:
        """A marker was appended. It changes nothing if its transaction wrote nothing to this partition."""
        first_offset = self._first_offsets.pop(producer_id, None)
        if first_offset is not None and not committed:
            self._aborted.append(AbortedTransaction(producer_id, first_offset, marker_offset))

    def first_offset(self, producer_id: int) -> int | None:
        """The first offset of the producer's open transaction; None if it has none."""
        return self._first_offsets.get(producer_id)

    def producers(self) -> set[int]:
        """The ids of producers with an open transaction."""
        return set(self._first_offsets)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if there is none."""
        return min(self._first_offsets.values(), default=None)

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from ``start`` up to ``end``, which is not included."""
        return [one for one in self._aborted if one.last_offset >= start and one.first_offset < end]

    def delete_before(self, offset: int) -> None:
        """Forgets aborted transactions that ended before this offset."""
        self._aborted = [one for one in self._aborted if one.last_offset >= offset]

    # restarts

    def under_way(self) -> list[tuple[int, int]]:
        """The open transactions: producer id and first offset."""
        return list(self._first_offsets.items())

    def restore(self, under_way: Iterable[tuple[int, int]], aborted: Iterable[tuple[int, int, int]]) -> None:
        """Restores the transactions from before a restart."""
        self._first_offsets = dict(under_way)
        self._aborted = [AbortedTransaction(*one) for one in aborted]

    def all_aborted(self) -> list[AbortedTransaction]:
        """All aborted transactions, in the order of their markers."""
        return list(self._aborted)
