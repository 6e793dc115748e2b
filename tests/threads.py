"""A check that no thread is left behind."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable

POOLED = re.compile(r"_\d+$")
"""How the name of a thread of a ThreadPoolExecutor ends."""


def assert_no_thread_is_left(before: Iterable[threading.Thread]) -> None:
    """The package's own threads have ended. Those of its pools (`BackgroundThreads`, and asyncio's for names that are
    resolved) may still be about to: nothing waits for them.

    Threads of earlier tests may end meanwhile, so a count would say nothing.
    """
    left = set(threading.enumerate()).difference(before)
    pooled = {thread for thread in left if POOLED.search(thread.name)}
    assert not [thread for thread in left - pooled if thread.name.startswith("aioproducer")]
    for thread in left:
        thread.join(30)
        assert not thread.is_alive(), thread
