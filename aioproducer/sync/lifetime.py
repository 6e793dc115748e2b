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
        """Called in a fork. Returns whether the producer is unusable here, because its thread is in the parent."""


_producers: weakref.WeakSet[Mortal] = weakref.WeakSet()


def watch(producer: Mortal) -> None:
    """Registers a producer: it learns of forks, and is closed at the end of the interpreter."""
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


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
# By then all non-daemon threads have ended, so none of their sends is cut short.
atexit.register(_close_all)
