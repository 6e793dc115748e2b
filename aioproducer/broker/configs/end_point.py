"""Where a listener listens."""

from __future__ import annotations

from typing import NamedTuple


class EndPoint(NamedTuple):
    """A listener's name, and its host and port (0: a free one)."""

    listener: str
    host: str
    port: int
