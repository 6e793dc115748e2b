"""A check that no thread is left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterable


def assert_no_thread_is_left(before: Iterable[threading.Thread]) -> None:
    """The package's threads have ended. One that resolved a name may still be about to: nothing waits for it.

    Threads of earlier tests may end meanwhile, so a count would say nothing.
    """
    left = set(threading.enumerate()).difference(before)
    assert not [thread for thread in left if thread.name.startswith("aioproducer")]
    for thread in left:
        thread.join(30)
        assert not thread.is_alive(), thread
