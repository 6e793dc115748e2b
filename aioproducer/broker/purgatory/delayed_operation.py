"""Something a broker does when a condition holds, or when its time is up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

from aioproducer.broker.purgatory.timing_wheel import TimerTask


class DelayedOperation(TimerTask, ABC):
    """What waits in a :class:`DelayedOperationPurgatory`. It ends once, whichever way is first.

    Subclasses say when it can be completed (:meth:`try_complete`), what that does (:meth:`on_complete`) and, if that
    makes a difference, what is done besides when its time was up (:meth:`on_expiration`).
    """

    def __init__(self, delay_ms: int) -> None:
        """Its time is up after ``delay_ms`` in the purgatory."""
        super().__init__()
        self.delay_ms = delay_ms
        self._completed = False

    @abstractmethod
    def try_complete(self) -> bool:
        """Looks whether the condition holds; if so calls :meth:`force_complete` and returns what that returned."""

    def try_complete_after(self, key: Hashable) -> bool:
        """The same once something has happened to ``key``, and to nothing else that was not tried before."""
        return self.try_complete()

    @abstractmethod
    def on_complete(self) -> None:
        """Does what was delayed. Called once."""

    def on_expiration(self) -> None:
        """Called after :meth:`on_complete` if that was called because the time was up."""

    @property
    def is_completed(self) -> bool:
        return self._completed

    def force_complete(self) -> bool:
        """Completes it, unless it has ended; whether this call did it."""
        if not self.abandon():
            return False
        self.on_complete()
        return True

    def abandon(self) -> bool:
        """Ends it without doing anything, as its client has disconnected. Returns whether this call ended it."""
        if self._completed:
            return False
        # Before anything else: what on_complete sets off may try this operation again.
        self._completed = True
        self.cancel()
        return True
