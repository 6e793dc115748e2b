"""The event loop and process to which a producer belongs after its start."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import weakref
from collections.abc import Callable

from aioproducer.errors import IllegalStateException

_get_running_loop = asyncio._get_running_loop

# Tells, per record, whether a call comes from the producer's own event loop: by the running loop, or on Python 3.11,
# where asking for that costs a system call, by the thread (the loop is then checked for records not simply appended).
here: Callable[[], object] = _get_running_loop if sys.version_info >= (3, 12) else threading.get_ident


class LoopAffinity:
    """One per producer. ``moved(mark)`` receives the value of ``here()`` on its loop, which every send compares."""

    def __init__(self, moved: Callable[[object], None]) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop; None until the producer was started."""
        self._moved = moved
        self.forked = False
        """Whether this process is a fork of the one with the loop."""

    def enter(self) -> None:
        """Binds the producer to the running loop."""
        self.loop = asyncio.get_running_loop()
        self._moved(here())
        _BOUND.add(self)

    def leave(self) -> None:
        """The producer has been closed."""
        _BOUND.discard(self)

    def check(self) -> None:
        """IllegalStateException unless the caller is in this loop and process."""
        if self.loop is None:
            raise IllegalStateException(
                "the producer is not started: use 'async with producer' or 'await producer.start()'"
            )
        if self.forked:
            raise IllegalStateException(
                f"the producer was started before this process (pid {os.getpid()}) was forked: make one after the fork"
            )
        if _get_running_loop() is not self.loop:
            raise IllegalStateException(
                "the producer belongs to another event loop: use it there, or make one for this loop; aioproducer.sync "
                "has one for threads"
            )

    def _left_behind(self) -> None:
        """Called in a fork: the loop belongs to the parent."""
        self.forked = True
        self._moved(self)  # nowhere: every call checks this first


_BOUND: weakref.WeakSet[LoopAffinity] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for affinity in _BOUND:
        affinity._left_behind()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
