"""Half a millisecond: then somebody else has a turn of the event loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, final

from aioproducer.producer.produce_result import Loop

TURN: Final = 0.0005
"""Seconds. A turn of the loop costs some 10 µs, so that the producer's speed hardly suffers."""

_COARSE: Final = ("uvloop", "winloop")
"""Modules of loops whose time goes on by whole milliseconds."""


@final
class Turn:
    """The time that something has worked without giving the loop a turn."""

    def __init__(self, loop: Loop) -> None:
        own = loop.time
        self._time: Callable[[], float] = time.monotonic if type(loop).__module__.startswith(_COARSE) else own
        self.begin()

    def begin(self) -> None:
        """Now it begins."""
        self._began = self._time()

    def over(self) -> bool:
        return self._time() - self._began >= TURN
