"""Records of batches as columns, the way Arrow has them in memory: no Python object for any of them.

The inverse of ``record_columns``. Compiled, a loop over the body of a batch copies keys and values into the columns; it
leaves the rest (a timestamp of more than eight bytes, anything malformed) to ``record_reader``, which reads it or
raises. Interpreted, ``batch_columns_pure`` makes the same bytes from the records that ``record_reader`` reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i32, i64, u8

from aioproducer.records.column_buffers import ByteBuffers, ColumnBuffers, HeaderBuffers
from aioproducer.records.record import Record
from aioproducer.records.record_reader import read_records

if TYPE_CHECKING:
    # Compiled code reaches these through their C interfaces; interpreted code never uses them (see record_writer.py).
    from librt.strings import BytesWriter, read_i64_le, write_i32_le, write_i64_le

_BY_WORDS: Final = 32
"""Bytes up to which it is cheaper to copy words than to make an object to copy from."""

_FAR: Final[i64] = 1 << 62
"""Timestamps as far from 1970 as this could overflow, and take the slow path."""

_GIVE_UP: Final = -1


def _varint(body: bytes, pos: i64, end: i64, bits: i64) -> tuple[i64, i64]:
    """A signed number in zigzag form and the position after it; ``_GIVE_UP`` if the number is longer or cut off."""
    if pos >= end:
        return 0, _GIVE_UP
    byte: i64 = body[pos]
    pos += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos
    rest: i64 = byte & 0x7F
    shift: i64 = 7
    while shift < bits:
        if pos >= end:
            return 0, _GIVE_UP
        byte = body[pos]
        pos += 1
        rest |= (byte & 0x7F) << shift
        if byte < 0x80:
            if rest >> bits != 0:
                return 0, _GIVE_UP
            return (rest >> 1) ^ -(rest & 1), pos
        shift += 7
    return 0, _GIVE_UP


@final
class ByteRows:
    """A column of bytes that grows."""

    def __init__(self) -> None:
        self._ends = BytesWriter()
        self._data = BytesWriter()
        self._valid = BytesWriter()
        self._bits: i64 = 0
        self.rows: i64 = 0
        self._nulls: i64 = 0
        write_i32_le(self._ends, i32(0))

    def append(self, body: bytes, begin: i64, size: i64) -> None:
        """Adds ``size`` bytes of ``body``, or null if it is -1."""
        if size < 0:
            self._nulls += 1
        else:
            self._bits |= 1 << (self.rows & 7)
            data = self._data
            if size > _BY_WORDS:
                data.write(body[begin : begin + size])
            else:
                end = begin + size
                while begin + 8 <= end:
                    write_i64_le(data, read_i64_le(body, begin))
                    begin += 8
                while begin < end:
                    data.append(u8(body[begin]))
                    begin += 1
        self.rows += 1
        if self.rows & 7 == 0:
            self._valid.append(u8(self._bits))
            self._bits = 0
        write_i32_le(self._ends, i32(len(self._data)))

    def append_object(self, value: bytes | None) -> None:
        """Adds a row."""
        if value is None:
            self.append(b"", 0, -1)
        else:
            self.append(value, 0, len(value))

    def truncate(self, rows: i64) -> None:
        """Removes all rows after this many."""
        while self.rows > rows:
            self.rows -= 1
            if self.rows & 7 == 7:
                at = self.rows >> 3
                self._bits = i64(self._valid[at])
                self._valid.truncate(at)
            bit = i64(1) << (self.rows & 7)
            if self._bits & bit == 0:
                self._nulls -= 1
            self._bits &= ~bit
        self._ends.truncate(4 * (rows + 1))
        size: i64 = 0
        shift: i64 = 0
        while shift < 4:
            size |= i64(self._ends[4 * rows + shift]) << (8 * shift)
            shift += 1
        self._data.truncate(size)

    def size(self) -> i64:
        """Bytes of the rows."""
        return len(self._data)

    def buffers(self) -> ByteBuffers:
        """The rows."""
        valid: bytes | None = None
        if self._nulls > 0:
            valid = self._valid.getvalue()
            if self.rows & 7 != 0:
                valid += bytes([int(self._bits)])
        return ByteBuffers(self._ends.getvalue(), self._data.getvalue(), valid)


@final
class BatchColumns:
    """Columns that grow by the records of one batch after another. ``keys``, ``values``, ``headers``: which to fill."""

    def __init__(self, keys: bool, values: bool, headers: bool) -> None:
        self.count: i64 = 0
        """Records held."""
        self._offsets = BytesWriter()
        self._timestamps = BytesWriter()
        self._keys = ByteRows() if keys else None
        self._values = ByteRows() if values else None
        self._header_ends = BytesWriter()
        self._header_names = ByteRows() if headers else None
        self._header_values = ByteRows()
        write_i32_le(self._header_ends, i32(0))

    def size(self) -> i64:
        """Bytes held, the records' own and 16 for each."""
        size = 16 * self.count + self._header_values.size()
        for column in (self._keys, self._values, self._header_names):
            if column is not None:
                size += column.size()
        return size

    def append(
        self,
        body: bytes,
        count: i64,
        base_offset: i64,
        last_offset_delta: i64,
        base_timestamp: i64,
        log_append_time: int | None,
        begin: i64,
        end: i64,
    ) -> i64:
        """Adds a batch's records with offsets from ``begin`` to before ``end``; returns how many.

        The other arguments and the errors are those of ``read_records``; after an error nothing was added.
        """
        before = self.count
        if not self._append_plain(
            body, count, base_offset, last_offset_delta, base_timestamp, log_append_time, begin, end
        ):
            self._truncate(before)
            records = list(
                read_records(
                    body,
                    count=count,
                    base_offset=base_offset,
                    last_offset_delta=last_offset_delta,
                    base_timestamp=base_timestamp,
                    log_append_time=log_append_time,
                )
            )
            for record in records:
                if begin <= record.offset < end:
                    self._append_record(record)
        return self.count - before

    def _append_plain(
        self,
        body: bytes,
        count: i64,
        base_offset: i64,
        last_offset_delta: i64,
        base_timestamp: i64,
        log_append_time: int | None,
        begin: i64,
        end: i64,
    ) -> bool:
        """As :meth:`append`; False, maybe after some records, if the slow path is needed."""
        stamped = log_append_time is not None
        timestamp: i64 = 0
        if log_append_time is not None:
            timestamp = log_append_time
        elif base_timestamp >= _FAR or base_timestamp <= -_FAR:
            return False
        offsets = self._offsets
        timestamps = self._timestamps
        keys = self._keys
        values = self._values
        names = self._header_names
        body_size: i64 = len(body)
        pos: i64 = 0
        previous: i64 = -1
        for _ in range(count):
            size, pos = _varint(body, pos, body_size, 32)
            after = pos + size
            if pos < 0 or size < 0 or after > body_size:
                return False
            delta, pos = _varint(body, pos + 1, after, 56)
            if pos < 0:
                return False
            offset_delta, pos = _varint(body, pos, after, 32)
            if pos < 0 or offset_delta <= previous or offset_delta > last_offset_delta:
                return False
            previous = offset_delta
            key_size, pos = _varint(body, pos, after, 32)
            if pos < 0 or key_size < -1 or pos + key_size > after:
                return False
            key_at = pos
            if key_size > 0:
                pos += key_size
            value_size, pos = _varint(body, pos, after, 32)
            if pos < 0 or value_size < -1 or pos + value_size > after:
                return False
            value_at = pos
            if value_size > 0:
                pos += value_size
            headers, pos = _varint(body, pos, after, 32)
            if pos < 0 or headers < 0 or headers * 2 > after - pos:
                return False
            offset = base_offset + offset_delta
            taken = begin <= offset < end
            if headers > 0:
                pos = self._append_headers(body, pos, after, headers, taken)
            if pos != after:
                return False
            if not taken:
                continue
            write_i64_le(offsets, offset)
            if not stamped:
                timestamp = base_timestamp + delta
            write_i64_le(timestamps, timestamp)
            if keys is not None:
                keys.append(body, key_at, key_size)
            if values is not None:
                values.append(body, value_at, value_size)
            if names is not None:
                write_i32_le(self._header_ends, i32(names.rows))
            self.count += 1
        return pos == body_size

    def _append_headers(self, body: bytes, pos: i64, after: i64, count: i64, taken: bool) -> i64:
        """Adds a record's headers if wanted, and returns the position after them; ``_GIVE_UP`` as above."""
        names = self._header_names
        for _ in range(count):
            name_size, pos = _varint(body, pos, after, 32)
            if pos < 0 or name_size < 0 or pos + name_size > after:
                return _GIVE_UP
            name_at = pos
            value_size, pos = _varint(body, pos + name_size, after, 32)
            if pos < 0 or value_size < -1 or pos + value_size > after:
                return _GIVE_UP
            if taken and names is not None:
                name = body[name_at : name_at + name_size]
                if name.isascii():
                    names.append(name, 0, name_size)
                else:
                    names.append_object(name.decode("utf-8", "replace").encode())
                self._header_values.append(body, pos, value_size)
            if value_size > 0:
                pos += value_size
        return pos

    def _append_record(self, record: Record) -> None:
        offset: i64 = record.offset
        timestamp: i64 = record.timestamp_ms
        write_i64_le(self._offsets, offset)
        write_i64_le(self._timestamps, timestamp)
        if self._keys is not None:
            self._keys.append_object(record.key)
        if self._values is not None:
            self._values.append_object(record.value)
        names = self._header_names
        if names is not None:
            for name, value in record.headers:
                names.append_object(name.encode())
                self._header_values.append_object(value)
            write_i32_le(self._header_ends, i32(names.rows))
        self.count += 1

    def _truncate(self, count: i64) -> None:
        """Removes all records after this many, and the headers of an unfinished one."""
        self.count = count
        self._offsets.truncate(8 * count)
        self._timestamps.truncate(8 * count)
        for column in (self._keys, self._values):
            if column is not None:
                column.truncate(count)
        names = self._header_names
        if names is not None:
            self._header_ends.truncate(4 * (count + 1))
            rows: i64 = 0
            shift: i64 = 0
            while shift < 4:
                rows |= i64(self._header_ends[4 * count + shift]) << (8 * shift)
                shift += 1
            names.truncate(rows)
            self._header_values.truncate(rows)

    def buffers(self) -> ColumnBuffers:
        """The columns held."""
        names = self._header_names
        headers: HeaderBuffers | None = None
        if names is not None:
            headers = HeaderBuffers(self._header_ends.getvalue(), names.buffers(), self._header_values.buffers())
        return ColumnBuffers(
            self.count,
            self._offsets.getvalue(),
            self._timestamps.getvalue(),
            None if self._keys is None else self._keys.buffers(),
            None if self._values is None else self._values.buffers(),
            headers,
        )


if hasattr(BatchColumns.append, "__code__") and not TYPE_CHECKING:
    # Interpreted (a native method has no code object), so the interpreter's twin takes over.
    from aioproducer.records.batch_columns_pure import BatchColumns
