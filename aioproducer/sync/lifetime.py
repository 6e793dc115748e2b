"""Producers that were not closed, at the end of the interpreter and in a forked process."""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from typing import Protocol

log = logging.getLogger(__name__)


class Mortal(Protocol):
    """A producer that may have its own thread, which keeps it alive."""

    def close(self) -> None: ...

    def _after_fork(self) -> bool:
        """This process is a fork. Whether the producer cannot be used here, because its thread is in the other one."""


_producers: weakref.WeakSet[Mortal] = weakref.WeakSet()


def watch(producer: Mortal) -> None:
    """It is told of forks, and closed at the end of the interpreter."""
    _producers.add(producer)


def _close_all() -> None:
    for producer in list(_producers):
        try:
            producer.close()
        except Exception:
            log.exception("a producer could not be closed at the end of the interpreter")


def _after_fork_in_child() -> None:
    for producer in list(_producers):
        if producer._after_fork():
            _producers.discard(producer)


os.register_at_fork(after_in_child=_after_fork_in_child)
# By then threads that are no daemons have ended: whoever sends from one is not cut short.
atexit.register(_close_all)
