"""Removes expired items at intervals, in slices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from aioproducer.broker.requests.long_work import SLICE
from aioproducer.errors import KafkaStorageException
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)


class Cleanup:
    """Runs ``clean`` every ``interval_ms``, counted from the end of the last run. Between any two items that ``clean``
    yields, other work may run."""

    def __init__(self, name: str, interval_ms: int, clean: Callable[[], Iterator[object]], clock: Clock) -> None:
        self._name = name
        self._interval_ms = interval_ms
        self._clean = clean
        self._now = clock.monotonic
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Starts the timer; does nothing if it has started."""
        if self._timer is None:
            self._wait()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._interval_ms / 1000, lambda: self._advance(self._clean()))

    def _advance(self, items: Iterator[object]) -> None:
        until = self._now() + SLICE
        try:
            for _ in items:
                if self._now() >= until:
                    self._timer = asyncio.get_running_loop().call_later(0, self._advance, items)
                    return
        except KafkaStorageException as error:
            log.warning("expired %s are not removed: %s", self._name, error)
        self._wait()
