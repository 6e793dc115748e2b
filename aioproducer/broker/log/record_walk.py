"""Reads the records of a batch, and validates every field. The broker has no other loop over records."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

_LEAST: Final = 6
"""Bytes that a record has at least: attributes, two deltas, the lengths of key and value, the number of headers."""

_INT: Final = 5
"""Bytes of the longest varint of 32 bits."""

_LONG: Final = 9
"""Bytes of the longest timestamp delta. Those of ten are beyond the year 100 million, and would not fit an i64."""

MOST_NAMED: Final = 1000
"""How many of the records that a topic refuses are named."""

MAX_DELTA: Final = 1 << 62
"""The largest absolute timestamp delta that is read."""

_NO_DELTA: Final = -(1 << 62)
_NEVER: Final = 1 << 62


class RecordWalk:
    """A walk over the ``count`` records in ``data`` from ``start`` on; :meth:`advance` reads some of them.

    A record is a size and that many bytes: attributes, the deltas of timestamp and offset, key, value and headers, each
    with its length. Lengths of one byte are read inline.
    """

    def __init__(
        self,
        data: bytes,
        start: i64,
        count: i64,
        absent: i64 = _NO_DELTA,
        wanted: i64 = _NEVER,
        first: i64 = 0,
        least: i64 = _NO_DELTA,
        most: i64 = _NEVER,
    ) -> None:
        """``absent`` is the timestamp delta of a record without a timestamp. ``wanted`` is the delta to search for,
        from the record ``first`` on. Timestamp deltas from ``least`` to ``most`` are allowed."""
        self._data = data
        self._pos = start
        self._count = count
        self._index: i64 = 0
        self._newest: i64 = _NO_DELTA
        self._oldest: i64 = _NEVER
        self._wanted = wanted
        self._first = first
        self._absent = absent
        self._least = least
        self._most = most
        self.found = -1
        """The first record with the wanted timestamp delta or a larger one; -1 if there is none so far."""
        self.found_delta = 0
        self.keyless: list[int] = []
        """The first records without a key so far, at most MOST_NAMED."""
        self.misdated: list[int] = []
        """The first records so far whose timestamps are not allowed, at most MOST_NAMED."""
        self.problem = ""
        """What is wrong with the records; empty if nothing is."""

    @property
    def max_timestamp_delta(self) -> int:
        """The largest timestamp delta so far."""
        return self._newest

    @property
    def min_timestamp_delta(self) -> int:
        """The smallest timestamp delta so far; larger than any delta if no record has a timestamp."""
        return self._oldest

    def advance(self, records: i64) -> bool:
        """Reads at most ``records`` more. Returns whether the walk is over: all records are read, or one is wrong."""
        data = self._data
        pos = self._pos
        end: i64 = len(data)
        index = self._index
        newest = self._newest
        oldest = self._oldest
        absent = self._absent
        least = self._least
        most = self._most
        keyless = self.keyless
        misdated = self.misdated
        wanted = self._wanted
        first = self._first
        stop = self._count
        if stop - index > records:
            stop = index + records
        while index < stop:
            if pos >= end:
                return self._wrong(index, "it is not there")
            size: i64 = data[pos]
            pos += 1
            if size > 0x7F:
                size = self._more(size, pos, end, _INT)
                pos = self._pos
            last = pos + (size >> 1)
            if size & 1 or size < 2 * _LEAST or last > end:
                return self._wrong(index, "its size cannot be")
            if data[pos]:  # no attribute is defined, and some clients misread others than 0
                return self._wrong(index, "its attributes are not 0")
            pos += 1

            delta: i64 = data[pos]
            pos += 1
            if delta > 0x7F:
                delta = self._more(delta, pos, last, _LONG)
                pos = self._pos
            if delta & 1:
                delta = -(delta >> 1) - 1
            else:
                delta >>= 1
            if delta > newest:
                newest = delta
            if delta < oldest and delta != absent:
                oldest = delta
            if (delta < least or delta > most) and delta != absent and len(misdated) < MOST_NAMED:
                misdated.append(index)
            if delta >= wanted and index >= first:
                wanted = _NEVER
                self.found, self.found_delta = index, delta

            if pos >= last:
                return self._wrong(index, "it ends within its timestamp")
            offset: i64 = data[pos]
            pos += 1
            if offset > 0x7F:
                offset = self._more(offset, pos, last, _INT)
                pos = self._pos
            if offset != index << 1:
                return self._wrong(index, "its offset is not the next one")

            if pos >= last:
                return self._wrong(index, "it ends before its key")
            length: i64 = data[pos]
            pos += 1
            if length > 0x7F:
                length = self._more(length, pos, last, _INT)
                pos = self._pos
            if not length & 1:
                pos += length >> 1
            elif length != 1:
                return self._wrong(index, "the length of its key is negative")
            elif len(keyless) < MOST_NAMED:
                keyless.append(index)

            if pos >= last:
                return self._wrong(index, "it ends within its key")
            length = data[pos]
            pos += 1
            if length > 0x7F:
                length = self._more(length, pos, last, _INT)
                pos = self._pos
            if not length & 1:
                pos += length >> 1
            elif length != 1:
                return self._wrong(index, "the length of its value is negative")

            if pos >= last:
                return self._wrong(index, "it ends within its value")
            headers: i64 = data[pos]
            pos += 1
            if headers:
                if headers > 0x7F:
                    headers = self._more(headers, pos, last, _INT)
                    pos = self._pos
                # A header has at least two bytes.
                if headers & 1 or headers > last - pos:
                    return self._wrong(index, "the number of its headers cannot be")
                pos = self._after_headers(headers >> 1, pos, last)
            if pos != last:
                return self._wrong(index, "its fields do not fill it exactly")
            index += 1
        self._pos, self._index, self._newest, self._oldest, self._wanted = pos, index, newest, oldest, wanted
        if index < self._count:
            return False
        if pos != end:
            self.problem = "something follows the last record"
        return True

    def _after_headers(self, count: i64, pos: i64, last: i64) -> i64:
        """The position after ``count`` headers; -1 if they are malformed."""
        data = self._data
        for _ in range(count):
            if pos >= last:
                return -1
            length: i64 = data[pos]
            pos += 1
            if length > 0x7F:
                length = self._more(length, pos, last, _INT)
                pos = self._pos
            if length & 1:  # negative: a header has a key
                return -1
            pos += length >> 1
            if pos >= last:
                return -1
            length = data[pos]
            pos += 1
            if length > 0x7F:
                length = self._more(length, pos, last, _INT)
                pos = self._pos
            if not length & 1:
                pos += length >> 1
            elif length != 1:
                return -1
        return pos

    def _more(self, first: i64, pos: i64, last: i64, most: i64) -> i64:
        """The zigzag number whose first byte stands before ``pos``; sets ``_pos`` to the position after it.

        For a number that is longer than ``most`` bytes, or reaches beyond ``last``, it returns 3, which stands for -2
        and is no valid length.
        """
        data = self._data
        number = first & 0x7F
        shift: i64 = 7
        while pos < last and shift < 7 * most:
            byte: i64 = data[pos]
            pos += 1
            number |= (byte & 0x7F) << shift
            if byte <= 0x7F:
                self._pos = pos
                return number
            shift += 7
        self._pos = last
        return 3

    def _wrong(self, index: i64, problem: str) -> bool:
        self.problem = f"record {index}: {problem}"
        return True
