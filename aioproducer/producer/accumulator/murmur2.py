"""Kafka's hash of a key (``Utils.murmur2``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

if TYPE_CHECKING:
    # Compiled code reaches this through librt's C interface; interpreted code never uses it (see record_writer.py).
    from librt.strings import read_i32_le


def murmur2(data: bytes) -> i64:
    """The 32-bit hash, as an unsigned number."""
    return murmur2_of(data, 0, len(data))


def murmur2_of(data: bytes, begin: i64, size: i64) -> i64:
    """The same for ``size`` bytes from ``begin`` on, which must exist."""
    m: i64 = 0x5BD1E995
    mask: i64 = 0xFFFFFFFF
    h: i64 = (0x9747B28C ^ size) & mask
    i: i64 = begin
    end: i64 = begin + (size & ~3)
    while i < end:
        k: i64 = (i64(read_i32_le(data, i)) * m) & mask
        k ^= k >> 24
        k = (k * m) & mask
        h = ((h * m) & mask) ^ k
        i += 4
    left: i64 = size & 3
    if left == 3:
        h ^= i64(data[end + 2]) << 16
    if left >= 2:
        h ^= i64(data[end + 1]) << 8
    if left >= 1:
        h ^= i64(data[end])
        h = (h * m) & mask
    h ^= h >> 13
    h = (h * m) & mask
    h ^= h >> 15
    return h


def partition_for_key(key: bytes, partitions: i64) -> i64:
    """The partition that Kafka's producers choose for this key: ``toPositive(murmur2(key)) % partitions``."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partition_for_key_of(data: bytes, begin: i64, size: i64, partitions: i64) -> i64:
    """The same for a key that is ``size`` bytes of ``data``, from ``begin`` on."""
    return (murmur2_of(data, begin, size) & 0x7FFFFFFF) % partitions


if hasattr(murmur2, "__code__") and not TYPE_CHECKING:
    # Interpreted: a native function has no code object.
    def read_i32_le(data: bytes, index: int) -> int:
        return int.from_bytes(data[index : index + 4], "little")
