"""An event loop that measures how long it is held, in CPU time: what a loaded machine takes away does not count."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class Held:
    """Seconds of CPU: the longest callback, and the longest turn, in which the loop runs all that was ready.

    ``collector`` is the longest run of the garbage collector, which goes through all objects of the process and may
    come in any callback; the others are without it. ``what`` is the longest callback, in words.
    """

    callback: float = 0.0
    turn: float = 0.0
    collector: float = 0.0
    callbacks: int = 0
    what: str = ""


class MeasuredLoop(asyncio.SelectorEventLoop):
    """asyncio's own event loop. Steps of the task that measures do not count: they only cause what is measured."""

    def __init__(self) -> None:
        super().__init__()
        self._held: Held | None = None
        self._measuring: asyncio.Task[object] | None = None
        self._thread = 0
        self._turn = 0.0
        self._collecting = 0.0
        """The garbage collector's time since the callback began."""
        self._collection_began = 0.0

    @contextmanager
    def measured(self) -> Iterator[Held]:
        """What the callbacks of this loop take meanwhile."""
        handles: Any = asyncio.Handle
        run = handles._run

        def timed(handle: Any) -> None:
            if handle._loop is not self:  # another thread's
                run(handle)
                return
            self._collecting = 0.0
            began = time.thread_time()
            run(handle)
            self._ran(handle, time.thread_time() - began - self._collecting)

        self._measuring = asyncio.current_task(self)
        self._thread = threading.get_ident()
        self._held = held = Held()
        handles._run = timed
        gc.callbacks.append(self._collect)
        try:
            yield held
        finally:
            gc.callbacks.remove(self._collect)
            handles._run = run
            self._held = None

    def _ran(self, handle: Any, took: float) -> None:
        held = self._held
        callback = handle._callback
        if held is None or getattr(callback, "__self__", None) is self._measuring:
            return
        self._turn += took
        held.callbacks += 1
        if took > held.callback:
            owner = getattr(callback, "__self__", None)
            held.callback, held.what = took, owner.get_name() if isinstance(owner, asyncio.Task) else repr(callback)

    def _collect(self, phase: str, info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collection_began = time.thread_time()
        elif self._held is not None:
            took = time.thread_time() - self._collection_began
            self._collecting += took
            self._held.collector = max(self._held.collector, took)

    def _run_once(self) -> None:
        self._turn = 0.0
        base: Any = super()
        base._run_once()
        if self._held is not None:
            self._held.turn = max(self._held.turn, self._turn)
