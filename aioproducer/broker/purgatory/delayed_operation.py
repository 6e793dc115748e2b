"""An operation that completes when a condition holds or at its time-out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

from aioproducer.broker.purgatory.timing_wheel import TimerTask


class DelayedOperation(TimerTask, ABC):
    """An operation that waits in a :class:`DelayedOperationPurgatory`. It ends exactly once.

    Subclasses define when it can be completed (:meth:`try_complete`), its effect (:meth:`on_complete`) and, optionally,
    what a time-out does in addition (:meth:`on_expiration`).
    """

    def __init__(self, delay_ms: int) -> None:
        """It times out after ``delay_ms`` in the purgatory."""
        super().__init__()
        self.delay_ms = delay_ms
        self._completed = False

    @abstractmethod
    def try_complete(self) -> bool:
        """If the condition holds, returns the result of :meth:`force_complete`; otherwise False."""

    def try_complete_after(self, key: Hashable) -> bool:
        """The same after an event of ``key``; all earlier events have been tried."""
        return self.try_complete()

    @abstractmethod
    def on_complete(self) -> None:
        """Runs the delayed effect. Called once."""

    def on_expiration(self) -> None:
        """Called after :meth:`on_complete` at a time-out."""

    @property
    def is_completed(self) -> bool:
        return self._completed

    def force_complete(self) -> bool:
        """Completes it unless it has ended. Returns whether this call completed it."""
        if not self.abandon():
            return False
        self.on_complete()
        return True

    def abandon(self) -> bool:
        """Ends it without any effect, because its client has disconnected. Returns whether this call ended it."""
        if self._completed:
            return False
        # First of all, because on_complete may cause this operation to be tried again.
        self._completed = True
        self.cancel()
        return True
