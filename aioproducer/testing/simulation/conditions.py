"""The state of the network while nothing is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conditions:
    """Speed, sizes, and what differs between systems."""

    latency: float = 0.001
    """Seconds one way; each piece takes from half to one and a half of it."""
    bandwidth: float = 1e8
    """Bytes per second and connection, each way."""
    window: int = 256 * 1024
    """Bytes sent and not yet read by the other side, each way."""
    splits: float = 0.1
    """How probable it is that what is sent at once does not arrive at once."""
    writes_later: bool = False
    """Whether transports hand over what is written in the loop's next turn, as uvloop's do."""
    reset_drops_unread: bool = False
    """Whether a reset makes bytes unreadable that arrived before it: some systems do that."""
    dead_address: bool = False
    """Whether names have another address besides, before the one that is listened on: nobody listens there."""
