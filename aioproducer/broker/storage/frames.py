"""Entries in a file: one frame after the other.

A frame has the length of its payload and the payload's CRC-32C (four bytes each, big-endian), then the payload: entries
by key as JSON, ``[[key, value], …]``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from aioproducer.records.crc32c import crc32c

_FRAME = struct.Struct(">II")
_BEGINS = b"[["
"""The first bytes of every payload."""

Key = tuple[str | int, ...]
Value = Any
"""Anything that JSON has; None stands for no entry."""


def frame(entries: Mapping[Key, Value]) -> bytes:
    """The bytes of a frame with these entries."""
    payload = json.dumps([[key, value] for key, value in entries.items()], separators=(",", ":")).encode()
    return _FRAME.pack(len(payload), crc32c(payload)) + payload


class Frame(NamedTuple):
    """A part of a file: its position, and its entries; None for bytes that are no frame."""

    start: int
    end: int
    entries: list[tuple[Key, Value]] | None


def read_frames(data: bytes) -> Iterator[Frame]:
    """Splits a file into frames. Where bytes are no frame it continues with the next good one."""
    start = 0
    while start < len(data):
        payload = _payload(data, start)
        if payload is None:
            end = _next_frame(data, start)
            yield Frame(start, end, None)
        else:
            end = start + _FRAME.size + len(payload)
            yield Frame(start, end, [(tuple(key), value) for key, value in json.loads(payload)])
        start = end


def _payload(data: bytes, start: int) -> bytes | None:
    """The payload of the frame that begins at ``start``; None if no good frame does."""
    if start + _FRAME.size > len(data):
        return None
    length, crc = _FRAME.unpack_from(data, start)
    start += _FRAME.size
    # A hole of zeros would look like an empty frame.
    if not 0 < length <= len(data) - start:
        return None
    payload = data[start : start + length]
    return payload if crc32c(payload) == crc else None


def _next_frame(data: bytes, bad: int) -> int:
    """The start of the first good frame after a bad one; the end of the data if there is none."""
    at = data.find(_BEGINS, bad + 1 + _FRAME.size)
    while at >= 0:
        if _payload(data, at - _FRAME.size) is not None:
            return at - _FRAME.size
        at = data.find(_BEGINS, at + 1)
    return len(data)
