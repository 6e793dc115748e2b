"""Timers of members, groups and transactions. However many are over at the same time, the event loop is not held."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from aioproducer.broker.requests.slices import Slices

K = TypeVar("K")


class Timers(Generic[K]):
    """Timers by key. Clients choose their times, so thousands may be over in the same turn: they are called back one
    after the other, in slices. A timer may be stopped until its callback is called."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._running: dict[K, asyncio.TimerHandle] = {}
        self._over: OrderedDict[K, Callable[[], object]] = OrderedDict()
        self._scheduled = False

    def __len__(self) -> int:
        """How many have not called back."""
        return len(self._running) + len(self._over)

    def start(self, key: K, delay_ms: int, callback: Callable[[], object]) -> None:
        """Starts a timer, or starts it again."""
        self.stop(key)
        loop = asyncio.get_running_loop()
        self._running[key] = loop.call_later(delay_ms / 1000, self._is_over, key, callback)

    def stop(self, key: K) -> None:
        """Harmless if there is none."""
        handle = self._running.pop(key, None)
        if handle is not None:
            handle.cancel()
        self._over.pop(key, None)

    def close(self) -> None:
        """Stops all."""
        for handle in self._running.values():
            handle.cancel()
        self._running.clear()
        self._over.clear()

    def _is_over(self, key: K, callback: Callable[[], object]) -> None:
        del self._running[key]
        self._over[key] = callback
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._slices.add(self, self._call_back)

    def _call_back(self, until: float) -> None:
        self._scheduled = False
        try:
            while self._over:
                _, callback = self._over.popitem(last=False)
                callback()
                if self._slices.now() >= until:
                    break
        finally:
            if self._over:
                self._schedule()
