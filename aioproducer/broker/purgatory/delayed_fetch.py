"""A fetch that waits for records."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from aioproducer.broker.purgatory.delayed_operation import DelayedOperation
from aioproducer.broker.requests.request import Request


class Fetching(Protocol):
    """A fetch request that may wait."""

    def is_enough(self) -> bool:
        """Whether enough can be read, or an error must be reported."""

    def is_enough_after(self, partition: Hashable) -> bool:
        """The same after an event of this partition; looks at no other one."""

    def answer(self) -> None:
        """Answers the request with what can be read."""

    def gone(self) -> None:
        """Called when the client has disconnected."""


class DelayedFetch(DelayedOperation):
    """Answers a fetch request when enough can be read or at its time-out, unless its client has disconnected."""

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
