"""Which batch of a log has an offset or a timestamp."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class LogIndex:
    """Of each batch the base offset, and the largest timestamp (ms) up to and including it: both rise, which makes them
    Kafka's offset index and time index. A batch's place is counted from the first one that there is.
    """

    __slots__ = ("base_offsets", "max_timestamps")

    def __init__(self, base_offsets: Iterable[int] = (), max_timestamps: Iterable[int] = ()) -> None:
        self.base_offsets = list(base_offsets)
        self.max_timestamps = list(max_timestamps)

    def __len__(self) -> int:
        return len(self.base_offsets)

    def append(self, base_offset: int, max_timestamp: int) -> None:
        """A batch has come."""
        if self.max_timestamps:
            max_timestamp = max(max_timestamp, self.max_timestamps[-1])
        self.base_offsets.append(base_offset)
        self.max_timestamps.append(max_timestamp)

    def delete(self, count: int) -> None:
        """So many are gone, the first ones."""
        del self.base_offsets[:count]
        del self.max_timestamps[:count]

    def place_of(self, offset: int) -> int:
        """The batch that holds ``offset``, or the last one before it; -1 if there is none."""
        return bisect_right(self.base_offsets, offset) - 1

    def count_before(self, offset: int) -> int:
        """How many batches begin before ``offset``."""
        return bisect_left(self.base_offsets, offset)

    def place_of_timestamp(self, timestamp: int) -> int:
        """The first batch with this timestamp or a later one; without any the place behind the last one."""
        return bisect_left(self.max_timestamps, timestamp)
