"""Decides how much of what is sent the system may hold for a connection (SO_SNDBUF).

The system keeps what it has sent until the other side has acknowledged it, and the event loop returns with more only
once in TURN or so. So the line stands idle unless the buffer holds what the line carries in the time of both. A larger
one is no use: it takes requests that cannot be taken back, and if the line becomes slow they are answered too late and
are sent again. So a connection begins with Kafka's size, and has up to WIDEST times as much while answers show that its
line is fast or long enough to need it.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

TURN: Final = 0.002
"""Seconds until the event loop returns to a socket, at a high rate of records."""

WIDEST: Final = 4
"""The largest size, in sizes that a connection has at first."""

FULL: Final = 0.5
"""The buffer is too small if the line needs more than this part of it."""

EMPTY: Final = 0.125
"""The buffer is too large if the line needs less than this part of it."""


@final
class SendBuffer:
    """The send buffers of connections to one node. Sizes are in bytes, times in seconds."""

    def __init__(self, size: int, *, grows: bool) -> None:
        """``size``: send.buffer.bytes; ``grows``: whether they may get larger."""
        self._first: i64 = size
        self._most: i64 = WIDEST * size if grows else size

    def needed(self, size: i64, ahead: i64, took: float, way: float) -> i64:
        """The size for a connection that has ``size``: twice as much, half of it, or the same. A request was answered
        ``took`` seconds after it was sent, and in that time the line has carried ``ahead`` bytes; a request of any size
        takes ``way`` seconds. Fewer bytes than the buffer holds show nothing about it."""
        if ahead < size or self._most == self._first:
            return size
        needs = float(ahead) * (way + TURN) / max(took, TURN)
        if needs > FULL * float(size):
            return min(size * 2, self._most)
        if needs < EMPTY * float(size):
            return max(size // 2, self._first)
        return size
