"""What a partition knows of the transactions that wrote to it (Kafka's ``TransactionIndex`` and the part of
``ProducerStateManager`` that finds the first unstable offset)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class AbortedTransaction(NamedTuple):
    """The records of ``producer_id`` from ``first_offset`` to ``last_offset``, its marker, are not to be read."""

    producer_id: int
    first_offset: int
    last_offset: int


class TransactionIndex:
    """Transactions under way, by producer id, and those that were aborted, in the order of their markers."""

    def __init__(self) -> None:
        self._first_offsets: dict[int, int] = {}
        self._aborted: list[AbortedTransaction] = []

    def wrote(self, producer_id: int, first_offset: int) -> None:
        """A batch of a transaction was appended."""
        self._first_offsets.setdefault(producer_id, first_offset)

    def ended(self, producer_id: int, marker_offset: int, *, committed: bool) -> None:
        """The marker of a transaction was appended; one for a transaction that wrote nothing here changes nothing."""
        first_offset = self._first_offsets.pop(producer_id, None)
        if first_offset is not None and not committed:
            self._aborted.append(AbortedTransaction(producer_id, first_offset, marker_offset))

    def first_offset(self, producer_id: int) -> int | None:
        """Where the producer's transaction under way began; None without any."""
        return self._first_offsets.get(producer_id)

    def producers(self) -> set[int]:
        """Those with a transaction under way."""
        return set(self._first_offsets)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction that has not ended began; None without any."""
        return min(self._first_offsets.values(), default=None)

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """Those with records from ``start`` up to ``end``, which is not included."""
        return [one for one in self._aborted if one.last_offset >= start and one.first_offset < end]

    def delete_before(self, offset: int) -> None:
        """Forgets what ended before the log starts."""
        self._aborted = [one for one in self._aborted if one.last_offset >= offset]

    # restarts

    def under_way(self) -> list[tuple[int, int]]:
        """The transactions that have not ended: producer id and first offset."""
        return list(self._first_offsets.items())

    def restore(self, under_way: Iterable[tuple[int, int]], aborted: Iterable[tuple[int, int, int]]) -> None:
        """What there was before a restart."""
        self._first_offsets = dict(under_way)
        self._aborted = [AbortedTransaction(*one) for one in aborted]

    def all_aborted(self) -> list[AbortedTransaction]:
        """In the order of their markers."""
        return list(self._aborted)
