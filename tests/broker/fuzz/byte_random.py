"""Random choices that bytes make: who changes the bytes a little changes a conversation a little."""

from __future__ import annotations

import math
from random import Random


class EndOfBytes(Exception):
    """All bytes are used up."""


class ByteRandom(Random):
    """Makes each choice from the next bytes, and raises :class:`EndOfBytes` behind the last."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data = data
        self._at = 0

    def getrandbits(self, k: int) -> int:
        size = math.ceil(k / 8)
        return int.from_bytes(self._take(size), "big") >> (8 * size - k)

    def random(self) -> float:
        return int.from_bytes(self._take(2), "big") / (1 << 16)

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise EndOfBytes
        self._at += size
        return self._data[self._at - size : self._at]
