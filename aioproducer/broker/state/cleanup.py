"""Removes expired items at intervals, in slices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial

from aioproducer.broker.requests.slices import Slices
from aioproducer.errors import KafkaStorageException

log = logging.getLogger(__name__)


class Cleanup:
    """Runs ``clean`` every ``interval_ms``, counted from the end of the last run. Between any two items that ``clean``
    yields, other work may run."""

    def __init__(self, name: str, interval_ms: int, clean: Callable[[], Iterator[object]], slices: Slices) -> None:
        self._name = name
        self._interval_ms = interval_ms
        self._clean = clean
        self._slices = slices
        self._timer: asyncio.TimerHandle | None = None
        self._started = False

    def start(self) -> None:
        """Starts the timer; does nothing if it has started."""
        if not self._started:
            self._started = True
            self._wait()

    def close(self) -> None:
        self._started = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_ms / 1000, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._slices.add(self, partial(self._advance, self._clean()))

    def _advance(self, items: Iterator[object], until: float) -> None:
        if not self._started:
            return
        try:
            for _ in items:
                if self._slices.now() >= until:
                    self._slices.add(self, partial(self._advance, items))
                    return
        except KafkaStorageException as error:
            log.warning("expired %s are not removed: %s", self._name, error)
        self._wait()
