"""Entries as they lie in a file: a row of frames.

A frame is the length of what follows the checksum, its CRC-32C (four bytes each, big-endian), and entries by key as
JSON: ``[[key, value], …]``.
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
    """The entries as they lie in the file."""
    payload = json.dumps([[key, value] for key, value in entries.items()], separators=(",", ":")).encode()
    return _FRAME.pack(len(payload), crc32c(payload)) + payload


class Frame(NamedTuple):
    """Part of a file: its place, and its entries; None for bytes that are no frame."""

    start: int
    end: int
    entries: list[tuple[Key, Value]] | None


def read_frames(data: bytes) -> Iterator[Frame]:
    """All of a file, in order. Behind bytes that are no frame comes the next good one."""
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
    """That of the frame that begins here; None if it is no good frame."""
    if start + _FRAME.size > len(data):
        return None
    length, crc = _FRAME.unpack_from(data, start)
    start += _FRAME.size
    # An empty one would be what a hole full of zeros looks like.
    if not 0 < length <= len(data) - start:
        return None
    payload = data[start : start + length]
    return payload if crc32c(payload) == crc else None


def _next_frame(data: bytes, bad: int) -> int:
    """Where the first good frame behind a bad one begins; where the data ends if there is none."""
    at = data.find(_BEGINS, bad + 1 + _FRAME.size)
    while at >= 0:
        if _payload(data, at - _FRAME.size) is not None:
            return at - _FRAME.size
        at = data.find(_BEGINS, at + 1)
    return len(data)
