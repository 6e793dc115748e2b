"""The sources of time: the broker's clock, and the stamps of records.

``now`` is always a parameter of a rule, never read inside one; the shells read it. Clients take only ``time_ms`` from
here: what they wait for is in the time of their event loop (``loop_clock.py``).
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only go forward, and milliseconds since the epoch."""

    def monotonic(self) -> float: ...

    def time_ms(self) -> int: ...


class SystemClock:
    """The machine's clocks."""

    monotonic = staticmethod(time.monotonic)

    @staticmethod
    def time_ms() -> int:
        return time.time_ns() // 1_000_000
