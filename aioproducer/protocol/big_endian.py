"""Whole numbers in bytes, signed and big-endian as all of fixed width on the wire.

Callers make sure that the bytes are there. In interpreted code, the twins below take over.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from mypy_extensions import i64

if TYPE_CHECKING:
    # Compiled code reaches these through librt's C interface; interpreted code never uses them (see record_writer.py).
    from librt.strings import read_i16_be, read_i32_be, read_i64_be


def int16_at(data: bytes, pos: i64) -> i64:
    return i64(read_i16_be(data, pos))


def int32_at(data: bytes, pos: i64) -> i64:
    return i64(read_i32_be(data, pos))


def int64_at(data: bytes, pos: i64) -> i64:
    return read_i64_be(data, pos)


if hasattr(int16_at, "__code__") and not TYPE_CHECKING:
    # Interpreted: a native function has no code object.
    _INT16 = struct.Struct(">h")
    _INT32 = struct.Struct(">i")
    _INT64 = struct.Struct(">q")

    def int16_at(data: bytes, pos: int) -> int:
        return _INT16.unpack_from(data, pos)[0]

    def int32_at(data: bytes, pos: int) -> int:
        return _INT32.unpack_from(data, pos)[0]

    def int64_at(data: bytes, pos: int) -> int:
        return _INT64.unpack_from(data, pos)[0]
