"""A serializer whose work is visible in the log, and which sometimes fails."""

from __future__ import annotations


def turn_around(value: bytes) -> bytes:
    """Reverses the bytes (value.serializer)."""
    if len(value) % 41 == 38:
        raise ValueError("not this one")
    return value[::-1]
