"""Deliveries that are read in chunks as they end, as a program does that wants to know every outcome.

The program does not stop sending to wait for an outcome, so each client is limited by its own memory, as with
callbacks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

CHUNK: Final = 10_000
"""Deliveries are read in chunks of this size."""

MOST_BEHIND: Final = 50
"""The oldest of more chunks than this is waited for. Kafka's 32 MiB hold half as many records of 100 B."""


class Chunks(Generic[T]):
    """The chunks that are not read yet; ``is_done`` tells whether a delivery has ended."""

    def __init__(self, is_done: Callable[[T], bool]) -> None:
        self._is_done = is_done
        self._chunks: deque[list[T]] = deque()

    def due_after(self, chunk: list[T]) -> Iterator[list[T]]:
        """Adds a chunk; those to be read now, in order: their last delivery has ended, so none waits for long."""
        self._chunks.append(chunk)
        while self._chunks and (len(self._chunks) > MOST_BEHIND or self._is_done(self._chunks[0][-1])):
            yield self._chunks.popleft()

    def rest(self) -> Iterator[list[T]]:
        """All others, at the end."""
        while self._chunks:
            yield self._chunks.popleft()
