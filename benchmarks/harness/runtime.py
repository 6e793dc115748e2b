"""The runtime of a run: the event loop and the settings of the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
from collections.abc import Callable
from typing import Final


def best_loop() -> str:
    """uvloop where it is installed, else asyncio's own."""
    return "asyncio" if importlib.util.find_spec("uvloop") is None else "uvloop"


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What ``asyncio.Runner`` takes; None is asyncio's own."""
    if name == "asyncio":
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module(name).new_event_loop
    return factory


def tune_collector() -> None:
    """Sets the garbage collector as docs/performance.md recommends. Call it when all long-lived objects exist."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


COLLECTORS: Final[dict[str, Callable[[], None]]] = {"default": lambda: None, "tuned": tune_collector}
"""Settings of the garbage collector, by name."""
