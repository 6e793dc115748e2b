"""Limits how often a log line is repeated."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, final

INTERVAL: Final = 10.0
"""Seconds between two lines of one kind."""


@final
class LogInterval:
    """An outage would otherwise fill a log with copies of one line. Times in seconds."""

    def __init__(self) -> None:
        self._next: dict[Hashable, float] = {}

    def next(self, kind: Hashable) -> float:
        """When there may be another line of this kind; 0 if there was none."""
        return self._next.get(kind, 0.0)

    def logged(self, kind: Hashable, now: float) -> None:
        """There is one now."""
        self._next[kind] = now + INTERVAL
