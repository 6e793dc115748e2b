"""A fetch that waits for records."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from aioproducer.broker.purgatory.delayed_operation import DelayedOperation
from aioproducer.broker.requests.request import Request


class Fetching(Protocol):
    """What a fetch request wants."""

    def is_enough(self) -> bool:
        """Whether there is enough to read, or an error to report."""

    def is_enough_after(self, partition: Hashable) -> bool:
        """The same once something has happened to this partition, which costs no more than to look at it."""

    def answer(self) -> None:
        """Answers the request with what there is to read."""

    def gone(self) -> None:
        """The client has disconnected."""


class DelayedFetch(DelayedOperation):
    """Answers a fetch request once there is enough to read or its time is up; never if its client is gone."""

    def __init__(self, request: Request, max_wait_ms: int, fetching: Fetching) -> None:
        super().__init__(max_wait_ms)
        self._fetching = fetching
        request.on_abandon(self._abandoned)

    def _abandoned(self) -> None:
        if self.abandon():
            self._fetching.gone()

    def try_complete(self) -> bool:
        return not self.is_completed and self._fetching.is_enough() and self.force_complete()

    def try_complete_after(self, key: Hashable) -> bool:
        return self._fetching.is_enough_after(key) and self.force_complete()

    def on_complete(self) -> None:
        self._fetching.answer()
