"""The event loop of a command, a thread or a Spark task of our own. (A user's program brings its loop along.)"""

from __future__ import annotations

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where that is installed (extra ``uvloop``), else asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
