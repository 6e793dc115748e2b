"""A serializer whose work can be seen in the log, and which now and then fails."""

from __future__ import annotations


def turn_around(value: bytes) -> bytes:
    """The bytes backwards (value.serializer)."""
    if len(value) % 41 == 38:
        raise ValueError("not this one")
    return value[::-1]
