"""A queue in which owners take turns."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Each owner has a queue of its own, and the owners take turns. So an owner with many items delays another owner's
    first item by one item at most."""

    def __init__(self) -> None:
        self._queues: OrderedDict[Hashable, deque[T]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, owner: Hashable, item: T) -> None:
        queue = self._queues.get(owner)
        if queue is None:
            self._queues[owner] = deque((item,))
        else:
            queue.append(item)
        self._size += 1

    def popleft(self) -> T:
        """The next item of the owner whose turn it is. Raises ``KeyError`` if there is none."""
        owner, queue = self._queues.popitem(last=False)
        item = queue.popleft()
        self._size -= 1
        if queue:
            self._queues[owner] = queue
        return item
