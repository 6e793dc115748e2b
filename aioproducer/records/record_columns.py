"""Writes records from Arrow's columns in memory into a batch, without a Python object for any of them.

A column of bytes is three buffers: the bytes of all rows one after the other, where each row begins (64-bit, one more
than there are rows), and a bit for each row that is not null. Interpreted, the twins below make the record's objects
and have the ordinary writer write them. Both write the same bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64, u8

from aioproducer.records.record_writer import RecordWriter, varint_size

if TYPE_CHECKING:
    from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i64_le

    # Compiled code reaches these through their C interfaces; interpreted code never uses them (see record_writer.py).
    from aioproducer.records.record_writer import write_head, write_varint

NO_BYTES: Final = -2
"""The size of a row that is neither bytes nor null."""

_BY_WORDS: Final = 32
"""Bytes up to which it is cheaper to copy words than to make an object to copy from."""


class Column:
    """Bytes for each row, or null."""

    def size(self, row: i64) -> i64:
        """Bytes of the row; -1 for null, ``NO_BYTES`` for what is neither."""
        raise NotImplementedError

    def value(self, row: i64) -> bytes | None:
        """The row as an object."""
        raise NotImplementedError

    def write_to(self, writer: BytesWriter, row: i64, size: i64) -> None:
        """Writes length and bytes of the row, which has this size."""
        raise NotImplementedError


@final
class ListColumn(Column):
    """The rows as objects."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def size(self, row: i64) -> i64:
        value: object = self._values[row]
        if isinstance(value, bytes):
            return len(value)
        if value is None:
            return -1
        return NO_BYTES

    def value(self, row: i64) -> bytes | None:
        value: bytes | None = self._values[row]
        return value

    def write_to(self, writer: BytesWriter, row: i64, size: i64) -> None:
        if size < 0:
            writer.append(u8(1))
            return
        write_varint(writer, size)
        value: bytes = self._values[row]
        writer.write(value)


@final
class ByteColumn(Column):
    """``data`` holds the rows one after the other, from ``base`` on; the bits of ``valid`` begin at ``first_bit``.

    ``ends`` are numbers of ``width`` bytes, 4 or 8: where the first row begins, and where each ends.
    """

    def __init__(
        self, data: bytes, ends: bytes, base: i64, valid: bytes | None, first_bit: i64, width: i64 = 8
    ) -> None:
        self.data = data
        self._ends = ends
        self._base = base
        self._valid = valid
        self._first_bit = first_bit
        self._width = width

    def begin(self, row: i64) -> i64:
        """Where in ``data`` the row begins."""
        if self._width == 8:
            return read_i64_le(self._ends, row * 8) - self._base
        return i64(read_i32_le(self._ends, row * 4)) - self._base

    def size(self, row: i64) -> i64:
        valid = self._valid
        if valid is not None:
            bit = self._first_bit + row
            if (i64(valid[bit >> 3]) >> (bit & 7)) & 1 == 0:
                return -1
        ends = self._ends
        if self._width == 8:
            return read_i64_le(ends, row * 8 + 8) - read_i64_le(ends, row * 8)
        return i64(read_i32_le(ends, row * 4 + 4)) - i64(read_i32_le(ends, row * 4))

    def value(self, row: i64) -> bytes | None:
        size = self.size(row)
        if size < 0:
            return None
        begin = self.begin(row)
        return self.data[begin : begin + size]

    def write_to(self, writer: BytesWriter, row: i64, size: i64) -> None:
        if size < 0:
            writer.append(u8(1))
            return
        write_varint(writer, size)
        data = self.data
        at = self.begin(row)
        end = at + size
        if size > _BY_WORDS:
            writer.write(data[at:end])
            return
        while at + 8 <= end:
            write_i64_le(writer, read_i64_le(data, at))
            at += 8
        while at < end:
            writer.append(u8(data[at]))
            at += 1


@final
class NumberColumn:
    """A 64-bit number for each row, or null."""

    def __init__(self, data: bytes, valid: bytes | None, first_bit: i64) -> None:
        self._data = data
        self._valid = valid
        self._first_bit = first_bit

    def value(self, row: i64) -> i64:
        """The row's number; -1 for null."""
        valid = self._valid
        if valid is not None:
            bit = self._first_bit + row
            if (i64(valid[bit >> 3]) >> (bit & 7)) & 1 == 0:
                return -1
        return read_i64_le(self._data, row * 8)


@final
class HeaderColumn:
    """A list of headers for each row, maybe null; their names and values are columns of their own."""

    def __init__(
        self, ends: bytes, base: i64, valid: bytes | None, first_bit: i64, names: ByteColumn, values: ByteColumn
    ) -> None:
        self._lists = ByteColumn(b"", ends, base, valid, first_bit)
        self._names = names
        self._values = values

    def count(self, row: i64) -> i64:
        """The number of headers in the row."""
        count = self._lists.size(row)
        return count if count > 0 else 0

    def nameless(self, row: i64) -> bool:
        """Whether a header's name is null, which is invalid."""
        at = self._lists.begin(row)
        end = at + self.count(row)
        while at < end:
            if self._names.size(at) < 0:
                return True
            at += 1
        return False

    def size(self, row: i64) -> i64:
        """Bytes of the row's headers, their number included."""
        count = self.count(row)
        size = varint_size(count)
        at = self._lists.begin(row)
        end = at + count
        while at < end:
            for column in (self._names, self._values):
                one = column.size(at)
                size += varint_size(one)
                if one > 0:
                    size += one
            at += 1
        return size

    def value(self, row: i64) -> list[tuple[str, bytes | None]] | None:
        """The row as an object; None without headers."""
        headers: list[tuple[str, bytes | None]] = []
        at = self._lists.begin(row)
        end = at + self.count(row)
        while at < end:
            name = self._names.value(at)
            headers.append(("" if name is None else name.decode(), self._values.value(at)))
            at += 1
        return headers or None

    def write_to(self, writer: BytesWriter, row: i64) -> None:
        """Writes number, names and values of the row's headers."""
        count = self.count(row)
        write_varint(writer, count)
        at = self._lists.begin(row)
        end = at + count
        while at < end:
            self._names.write_to(writer, at, self._names.size(at))
            self._values.write_to(writer, at, self._values.size(at))
            at += 1


@final
class RecordColumns:
    """The columns of records: values, and keys and headers if there are any. Sizes are computed once, on demand."""

    def __init__(self, values: Column, keys: Column | None, headers: HeaderColumn | None) -> None:
        self.values = values
        self.keys = keys
        self.headers = headers

    def key_size(self, row: i64) -> i64:
        """Bytes of the key; -1 for none."""
        keys = self.keys
        if keys is None:  # not a conditional expression, which mypyc would box
            return -1
        return keys.size(row)

    def value_size(self, row: i64) -> i64:
        """Bytes of the value; -1 for none."""
        return self.values.size(row)

    def rest(self, row: i64, key_size: i64, value_size: i64) -> i64:
        """Bytes of the record from the length of its key on; before that come ``MAX_RECORD_OVERHEAD`` at most."""
        size = varint_size(key_size) + varint_size(value_size)
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        headers = self.headers
        if headers is None:
            return size + 1
        return size + headers.size(row)

    def append_to(
        self,
        records: RecordWriter,
        offset_delta: i64,
        timestamp_delta: i64,
        row: i64,
        key_size: i64,
        value_size: i64,
        rest: i64,
    ) -> None:
        """Writes the row as a batch's next record (``RecordWriter.append`` explains the deltas)."""
        keys = self.keys
        headers = self.headers
        writer = records._records
        write_head(writer, rest, timestamp_delta, offset_delta)
        if keys is None:
            writer.append(u8(1))
        else:
            keys.write_to(writer, row, key_size)
        self.values.write_to(writer, row, value_size)
        if headers is None:
            writer.append(u8(0))
        else:
            headers.write_to(writer, row)


if hasattr(RecordColumns.append_to, "__code__") and not TYPE_CHECKING:
    # Interpreted: a native method has no code object.
    _NUMBER = struct.Struct("<q")
    _END = {4: struct.Struct("<i"), 8: struct.Struct("<q")}
    _ENDS = {4: struct.Struct("<ii"), 8: struct.Struct("<qq")}

    class ByteColumn(ByteColumn):
        def begin(self, row: int) -> int:
            return _END[self._width].unpack_from(self._ends, row * self._width)[0] - self._base

        def size(self, row: int) -> int:
            if self._valid is not None:
                bit = self._first_bit + row
                if not self._valid[bit >> 3] >> (bit & 7) & 1:
                    return -1
            begin, end = _ENDS[self._width].unpack_from(self._ends, row * self._width)
            return end - begin

    class NumberColumn(NumberColumn):
        def value(self, row: int) -> int:
            if self._valid is not None:
                bit = self._first_bit + row
                if not self._valid[bit >> 3] >> (bit & 7) & 1:
                    return -1
            return _NUMBER.unpack_from(self._data, row * 8)[0]

    class RecordColumns(RecordColumns):
        def append_to(
            self,
            records: RecordWriter,
            offset_delta: int,
            timestamp_delta: int,
            row: int,
            key_size: int,
            value_size: int,
            rest: int,
        ) -> None:
            records.append(
                offset_delta,
                timestamp_delta,
                None if self.keys is None else self.keys.value(row),
                self.values.value(row),
                None if self.headers is None else self.headers.value(row),
            )
