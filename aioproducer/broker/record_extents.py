"""Where the records in a batch begin and end: the one loop over records in this broker.

Compiled when there is a compiler.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

_MIN_ZIGZAG_SIZE: Final = 2 * 6
"""The least a record has: attributes, two deltas, the lengths of key and value, the number of headers."""


def fill_exactly(data: bytes, start: i64, count: i64) -> bool:
    """Whether ``data`` from ``start`` on is ``count`` records: each a size, in a zigzag varint, and as many bytes.

    Sizes of one or two bytes take the short way.
    """
    pos = start
    end: i64 = len(data)
    for _ in range(count):
        if pos + 1 >= end:
            return False
        size: i64 = data[pos]
        pos += 1
        if size > 0x7F:
            more: i64 = data[pos]
            pos += 1
            size += (more << 7) - 0x80
            if more > 0x7F:
                size &= 0x3FFF
                shift: i64 = 14
                while True:
                    if pos >= end or shift > 28:  # more than five bytes are as bad as a negative size
                        return False
                    byte: i64 = data[pos]
                    pos += 1
                    size |= (byte & 0x7F) << shift
                    if byte <= 0x7F:
                        break
                    shift += 7
        if size & 1 or size < _MIN_ZIGZAG_SIZE:  # odd ones are negative
            return False
        pos += size >> 1
    return pos == end
