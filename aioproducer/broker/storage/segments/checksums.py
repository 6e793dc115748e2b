"""CRC-32C of any stretch of a file, without reading all of the stretch.

It reads the file once, and keeps the checksum of everything before each block. The checksum of a stretch follows from
those before its two ends: a checksum is the remainder of a polynomial over GF(2), so the remainder of what lies before
the stretch, times the power of x for the stretch's length, can be subtracted.
"""

from __future__ import annotations

from array import array
from functools import cache

from fastcrc.crc32 import iscsi as crc32c

from aioproducer.broker.storage.files import Files

_BLOCK = 4096
_CHUNK = 256 * _BLOCK

_POLYNOMIAL = 0x82F6_3B78
"""Castagnoli's, reflected: the highest bit is the coefficient of x^0."""

_ONE = 1 << 31
_X_8 = 1 << 23


class FileChecksums:
    """The checksums of one file, which does not change. A stretch costs two blocks, and the part of the file up to its
    end if that was not read before."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._before = array("I", [0])

    def of(self, position: int, end: int) -> int:
        """The checksum of a stretch that lies within the file."""
        return self._up_to(end) ^ _times_x_8(self._up_to(position), end - position)

    def _up_to(self, end: int) -> int:
        block = end // _BLOCK
        while block >= len(self._before):
            self._read_on()
        start = block * _BLOCK
        rest = self._files.read(self._path, start, end - start) if start < end else b""
        return crc32c(rest, self._before[block])

    def _read_on(self) -> None:
        """Adds the checksums before the next blocks. Those beyond the end of the file are not asked for."""
        start = (len(self._before) - 1) * _BLOCK
        data = self._files.read(self._path, start, _CHUNK)
        for at in range(0, _CHUNK, _BLOCK):
            self._before.append(crc32c(data[at : at + _BLOCK], self._before[-1]))


def _times_x_8(checksum: int, count: int) -> int:
    """The checksum times x^(8·count)."""
    for powers in _powers():
        count, digit = divmod(count, 256)
        if digit:
            checksum = _product(powers[digit], checksum)
    return checksum


@cache
def _powers() -> list[list[int]]:
    """For each of the four digits of a number to base 256, x^8 to the power of that digit alone."""
    found, step = [], _X_8
    for _ in range(4):
        powers = [_ONE]
        for _ in range(256):
            powers.append(_product(step, powers[-1]))
        step = powers.pop()
        found.append(powers)
    return found


def _product(one: int, other: int) -> int:
    """The product of two polynomials modulo Castagnoli's."""
    product = 0
    while one:
        if one & _ONE:
            product ^= other
        one = (one << 1) & 0xFFFF_FFFF
        other = (other >> 1) ^ (_POLYNOMIAL if other & 1 else 0)
    return product
