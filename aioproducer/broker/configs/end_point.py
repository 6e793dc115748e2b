"""The address of a listener."""

from __future__ import annotations

from typing import NamedTuple


class EndPoint(NamedTuple):
    """A listener's name, host and port (0: any free port)."""

    listener: str
    host: str
    port: int
