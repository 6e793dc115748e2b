"""Finds the batch of a log that has an offset or a timestamp, and the bytes between two batches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate


class LogIndex:
    """The base offset of each batch, and the largest timestamp (ms) of the log up to its end. Both increase, so they
    serve as Kafka's offset index and time index. The place of a batch is counted from the first one in the log.
    """

    __slots__ = ("_ends", "_start", "base_offsets", "max_timestamps")

    def __init__(
        self, base_offsets: Iterable[int] = (), max_timestamps: Iterable[int] = (), sizes: Iterable[int] = ()
    ) -> None:
        self.base_offsets = list(base_offsets)
        self.max_timestamps = list(max_timestamps)
        # The end of each batch, counted in all bytes ever appended; the first batch begins at _start.
        self._ends = list(accumulate(sizes))
        self._start = 0

    def __len__(self) -> int:
        return len(self.base_offsets)

    def append(self, base_offset: int, max_timestamp: int, size: int) -> None:
        """A batch was appended."""
        if self.max_timestamps:
            max_timestamp = max(max_timestamp, self.max_timestamps[-1])
        self.base_offsets.append(base_offset)
        self.max_timestamps.append(max_timestamp)
        self._ends.append((self._ends[-1] if self._ends else self._start) + size)

    def delete(self, count: int) -> None:
        """Removes the first ``count`` entries."""
        for end in self._ends[:count][-1:]:
            self._start = end
        del self.base_offsets[:count]
        del self.max_timestamps[:count]
        del self._ends[:count]

    def size(self, first: int, last: int) -> int:
        """The bytes of the batches from place ``first`` up to ``last``, which is not included."""
        if first >= last:
            return 0
        return self._ends[last - 1] - (self._ends[first - 1] if first else self._start)

    def place_of(self, offset: int) -> int:
        """The batch that holds ``offset``, or the last one before it; -1 if there is none."""
        return bisect_right(self.base_offsets, offset) - 1

    def count_before(self, offset: int) -> int:
        """How many batches begin before ``offset``."""
        return bisect_left(self.base_offsets, offset)

    def place_of_timestamp(self, timestamp: int) -> int:
        """The first batch with this timestamp or a later one; the place after the last batch if there is none."""
        return bisect_left(self.max_timestamps, timestamp)
