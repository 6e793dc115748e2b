"""A fetch that waits for records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from aioproducer.broker.request import Request
from aioproducer.broker.topic import Partition


class DelayedFetch:
    """Watches partitions for a fetch request until it can be answered, its time is up, or its client is gone.

    ``try_complete`` answers the request if it can be answered now and says whether it did; ``complete`` answers it in
    any case. Whatever ends the wait ends it once.
    """

    def __init__(
        self,
        request: Request,
        partitions: Iterable[Partition],
        max_wait_s: float,
        *,
        try_complete: Callable[[], bool],
        complete: Callable[[], None],
    ) -> None:
        self._partitions = tuple(partitions)
        self._try_complete = try_complete
        self._complete = complete
        self._timer = asyncio.get_running_loop().call_later(max_wait_s, self._expire)
        for partition in self._partitions:
            partition.watchers.add(self._partition_changed)
        request.on_abandon(self._forget)

    def _partition_changed(self) -> None:
        if self._try_complete():
            self._forget()

    def _expire(self) -> None:
        self._forget()
        self._complete()

    def _forget(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.watchers.discard(self._partition_changed)
