"""Per record of a batch: timestamp delta, key size and value size, read only when its metadata is asked for.

16 bytes each, little-endian: i64, i32, i32. Interpreted, the twins below take over.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

if TYPE_CHECKING:
    # Compiled code reaches these through librt's C interface; interpreted code never uses them (see record_writer.py).
    from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i64_le

_SIZE: Final = 16


@final
@mypyc_attr(acyclic=True)
class RecordSizes:
    """Collects the sizes of a batch's records as they are appended; a size of -1 stands for None."""

    def __init__(self) -> None:
        self._writer = BytesWriter()

    def append(self, timestamp_delta: i64, key_size: i64, value_size: i64) -> None:
        writer = self._writer
        write_i64_le(writer, timestamp_delta)
        write_i64_le(writer, key_size & 0xFFFF_FFFF | value_size << 32)

    def size(self) -> i64:
        return len(self._writer)

    def freeze(self) -> bytes:
        return self._writer.getvalue()

    def clear(self) -> None:
        self._writer.truncate(0)


def timestamp_delta_at(sizes: bytes, index: i64) -> i64:
    return read_i64_le(sizes, index * _SIZE)


def key_size_at(sizes: bytes, index: i64) -> i64:
    return i64(read_i32_le(sizes, index * _SIZE + 8))


def value_size_at(sizes: bytes, index: i64) -> i64:
    return i64(read_i32_le(sizes, index * _SIZE + 12))


if hasattr(RecordSizes.append, "__code__") and not TYPE_CHECKING:
    # Interpreted: a native method has no code object.
    _ENTRY = struct.Struct("<qii")
    _DELTA = struct.Struct("<q")
    _LENGTH = struct.Struct("<i")

    class RecordSizes:
        def __init__(self) -> None:
            self._buffer = bytearray()

        def append(self, timestamp_delta: int, key_size: int, value_size: int) -> None:
            self._buffer += _ENTRY.pack(timestamp_delta, key_size, value_size)

        def size(self) -> int:
            return len(self._buffer)

        def freeze(self) -> bytes:
            return bytes(self._buffer)

        def clear(self) -> None:
            self._buffer.clear()

    def timestamp_delta_at(sizes: bytes, index: int) -> int:
        return _DELTA.unpack_from(sizes, index * _SIZE)[0]

    def key_size_at(sizes: bytes, index: int) -> int:
        return _LENGTH.unpack_from(sizes, index * _SIZE + 8)[0]

    def value_size_at(sizes: bytes, index: int) -> int:
        return _LENGTH.unpack_from(sizes, index * _SIZE + 12)[0]
