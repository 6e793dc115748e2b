"""A record as it is in a log."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """One record that was read from a batch."""

    offset: int
    timestamp_ms: int
    """Milliseconds since the epoch: the producer's, or the broker's if the batch has log append time; -1 for none."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
