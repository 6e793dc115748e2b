"""The properties of a network without faults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conditions:
    """Speed, sizes, and differences between systems."""

    latency: float = 0.001
    """Seconds one way; each piece takes from half to one and a half of it."""
    bandwidth: float = 1e8
    """Bytes per second and connection, each way."""
    window: int = 256 * 1024
    """Bytes that are sent, but not yet read by the other side, each way."""
    splits: float = 0.1
    """The probability that bytes sent together arrive in several pieces."""
    writes_later: bool = False
    """Whether transports write in the next turn of the loop, as those of uvloop do."""
    reset_drops_unread: bool = False
    """Whether a reset makes bytes unreadable that arrived before it, as on some systems."""
    dead_address: bool = False
    """Whether names resolve first to an address without a listener."""
