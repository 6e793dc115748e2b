"""Deliveries that are read in chunks, some way behind the records that are being sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from benchmarks.works.run import Run

T = TypeVar("T")

CHUNK: Final = 10_000
"""Deliveries are read in chunks of this size."""

RECORDS_A_PARTITION: Final = 25
"""As many are on their way at least, or a producer with many partitions would wait for small batches."""

CHUNKS_ON_A_LINE: Final = 5
"""Over a long line more are on their way than ``buffer.memory`` holds of 1,000 B each, so that it is the limit."""


class Chunks(Generic[T]):
    """The chunks that are not read yet."""

    def __init__(self, run: Run) -> None:
        least = CHUNKS_ON_A_LINE if run.round_trip_ms else 1
        self._behind = max(least, RECORDS_A_PARTITION * run.partitions // CHUNK)
        self._chunks: deque[list[T]] = deque()

    def due_after(self, chunk: list[T]) -> Iterator[list[T]]:
        """Adds a chunk; those to be read now."""
        self._chunks.append(chunk)
        while len(self._chunks) > self._behind:
            yield self._chunks.popleft()

    def rest(self) -> Iterator[list[T]]:
        """All others, at the end."""
        while self._chunks:
            yield self._chunks.popleft()
