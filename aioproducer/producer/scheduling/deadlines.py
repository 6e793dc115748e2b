"""A heap of deadlines, earliest first."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

Item = TypeVar("Item")


class DeadlineHeap(Generic[Item]):
    """A heap of (when, what). The caller skips entries that are obsolete when their time comes."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._count = 0

    def push(self, when: float, item: Item) -> None:
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, item))

    def next(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float, most: int) -> list[Item]:
        """What is due at ``now``, in order; at most so many items, and the others stay."""
        due: list[Item] = []
        while self._heap and self._heap[0][0] <= now and len(due) < most:
            due.append(heapq.heappop(self._heap)[2])
        return due

    def __len__(self) -> int:
        return len(self._heap)
