"""The columns of a table to send, read through pyarrow a little at a time."""

from __future__ import annotations

import difflib
import struct
from collections.abc import Iterator
from typing import Any, Final

from aioproducer.errors import IllegalArgumentException, IllegalStateException
from aioproducer.producer.bulk.table_rows import TableRows
from aioproducer.records.record_columns import ByteColumn, HeaderColumn, NumberColumn, RecordColumns

_ENDS: Final = {4: struct.Struct("<i"), 8: struct.Struct("<q")}

READ_AHEAD_BYTES: Final = 256 * 1024
"""About as many bytes of keys and values are taken from a table at a time …"""

READ_AHEAD_ROWS: Final = 8192
"""… and no more rows than these."""


class TableColumns:
    """A stream of record batches, of which ``columns`` (by role: value, key, …) are sent.

    ``first`` is the number of the first row.

    IllegalArgumentException for an object that is no table, a missing column, or a column of an unsupported type.
    """

    def __init__(self, table: Any, first: int = 0, ahead: int = 4, /, **columns: str | None) -> None:
        self._arrow = _pyarrow()
        self._names = {role: name for role, name in columns.items() if name is not None}
        self._batches = self._open(table)
        self._schema = self._batches.schema
        self._places = {role: self._find(role, name) for role, name in self._names.items()}
        self._types = {role: self._target(role, self._schema.field(at)) for role, at in self._places.items()}
        self.count = first
        """Rows read so far, and those before the first."""
        self.broken: Exception | None = None
        self.ahead = ahead
        """The number of rows to read next: it grows as far as their bytes allow."""
        self._portions = self._read()

    def read(self) -> TableRows | None:
        """The next rows; None if there are no more, or if the next are ``broken``."""
        try:
            return next(self._portions, None)
        except Exception as error:
            self.broken = error
            return None

    def _read(self) -> Iterator[TableRows]:
        for batch in self._batches:
            begin = 0
            while begin < batch.num_rows:
                count = min(self.ahead, batch.num_rows - begin)
                columns = {role: batch.column(at).slice(begin, count) for role, at in self._places.items()}
                while count > 1 and self._size(columns) > 2 * READ_AHEAD_BYTES:
                    count //= 2
                    columns = {role: column.slice(0, count) for role, column in columns.items()}
                rows = self._rows(columns, count)
                begin += count
                self.count += count
                yield rows

    def _size(self, columns: dict[str, Any]) -> int:
        """Bytes of keys and values, as far as known before reading them."""
        spans = [_span(self._arrow.types, column) for role, column in columns.items() if role in ("value", "key")]
        return sum(last - first for first, last in spans)

    def _rows(self, columns: dict[str, Any], count: int) -> TableRows:
        cast = {role: self._cast(role, column) for role, column in columns.items() if role != "headers"}
        types = self._arrow.types
        values = _byte_column(types, cast["value"])
        keys = _byte_column(types, cast["key"]) if "key" in cast else None
        headers = None
        if "headers" in columns:
            headers = self._headers(columns["headers"])
        size = len(values.data) + (0 if keys is None else len(keys.data))
        self.ahead = max(1, min(READ_AHEAD_ROWS, 4 * self.ahead, READ_AHEAD_BYTES * count // (size + 1)))
        return TableRows(
            self.count,
            count,
            RecordColumns(values, keys, headers),
            _number_column(cast["partition"]) if "partition" in cast else None,
            _number_column(cast["timestamp"]) if "timestamp" in cast else None,
            self._names,
        )

    def _cast(self, role: str, column: Any) -> Any:
        pa = self._arrow
        if role in ("value", "key") and _end_width(pa.types, column.type):
            return column
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        try:
            # A time may lose only its fraction of a millisecond.
            column = column.cast(options=pa.compute.CastOptions(self._types[role], allow_time_truncate=True))
        except pa.ArrowInvalid as error:
            raise IllegalArgumentException(
                f"column {self._names[role]!r}, rows {self.count} to {self.count + len(column) - 1}: {error}"
            ) from error
        return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column

    def _headers(self, column: Any) -> HeaderColumn | None:
        pa, types = self._arrow, self._arrow.types
        if types.is_null(column.type):
            return None
        offsets = column.offsets.cast(pa.int64())
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        if types.is_map(column.type):
            names, values = column.keys, column.items
        else:
            # Flattened, a null entry has a null name.
            names, values = column.values.flatten()
        names = self._texts(names.slice(first, last - first))
        values = values.slice(first, last - first).cast(pa.large_binary())
        valid, bit = _validity(column)
        return HeaderColumn(
            _bytes_of(offsets, 8), first, valid, bit, _byte_column(types, names), _byte_column(types, values)
        )

    def _texts(self, names: Any) -> Any:
        """In bytes; null for one that is not UTF-8, because neither can be the name of a header."""
        pa = self._arrow
        names = names.cast(pa.large_string())
        try:
            names.validate(full=True)
        except pa.ArrowInvalid:
            raw = names.cast(pa.large_binary()).to_pylist()
            return pa.array([name if name is None or _is_utf8(name) else None for name in raw], pa.large_binary())
        return names.cast(pa.large_binary())

    def _open(self, table: Any) -> Any:
        pa = self._arrow
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
        if hasattr(table, "__arrow_c_array__"):
            batch = pa.record_batch(table)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
        raise IllegalArgumentException(
            f"the table is of type {type(table).__name__}; it must be something with __arrow_c_stream__, such as a "
            "table of pyarrow, polars or pandas; a sequence of values is for send_many()"
        )

    def _find(self, role: str, name: object) -> int:
        names = self._schema.names
        places = [at for at, one in enumerate(names) if one == name]
        if len(places) == 1:
            return places[0]
        if places:
            raise IllegalArgumentException(f"{role}={name!r}: the table has {len(places)} columns of this name")
        near = difflib.get_close_matches(str(name), names, 1)
        raise IllegalArgumentException(
            f"{role}={name!r}: the table has no such column; "
            + (f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, names))}")
        )

    def _target(self, role: str, field: Any) -> Any:
        """The type to cast the column to."""
        pa, types = self._arrow, self._arrow.types
        given = field.type
        if role in ("value", "key"):
            if types.is_null(given) or _holds_bytes(types, given):
                return pa.large_binary()
            wanted = "bytes or text: make it so first, for example with cast(pyarrow.string()), or JSON of it"
        elif role == "partition":
            if types.is_null(given) or types.is_integer(given):
                return pa.int64()
            wanted = "an integer; null or -1 for a partition that is to be chosen"
        elif role == "timestamp":
            if types.is_null(given) or types.is_integer(given):
                return pa.int64()
            if types.is_timestamp(given) or types.is_date(given):
                return pa.timestamp("ms", getattr(given, "tz", None))
            wanted = "a timestamp, a date, or an integer, which is milliseconds since 1970"
        else:
            if types.is_null(given) or _holds_headers(types, given):
                return given
            wanted = "a list of structs of a text and bytes, or a map of text to bytes"
        raise IllegalArgumentException(f"column {field.name!r} is a {given}; as {role} it must be {wanted}")


def _holds_bytes(types: Any, given: Any) -> bool:
    if types.is_dictionary(given):
        given = given.value_type
    kinds = (
        types.is_binary,
        types.is_large_binary,
        types.is_binary_view,
        types.is_fixed_size_binary,
    )
    return _holds_text(types, given) or any(kind(given) for kind in kinds)


def _holds_text(types: Any, given: Any) -> bool:
    return bool(types.is_string(given) or types.is_large_string(given) or types.is_string_view(given))


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _holds_headers(types: Any, given: Any) -> bool:
    if types.is_map(given):
        name, value = given.key_type, given.item_type
    elif (types.is_list(given) or types.is_large_list(given)) and types.is_struct(given.value_type):
        if given.value_type.num_fields != 2:
            return False
        name, value = given.value_type.field(0).type, given.value_type.field(1).type
    else:
        return False
    return _holds_text(types, name) and not types.is_dictionary(value) and _holds_bytes(types, value)


def _end_width(types: Any, given: Any) -> int:
    """The width of the row offsets in bytes; 0 for types whose rows are not contiguous."""
    if types.is_binary(given) or types.is_string(given):
        return 4
    return 8 if types.is_large_binary(given) or types.is_large_string(given) else 0


def _span(types: Any, array: Any) -> tuple[int, int]:
    """Where the rows' bytes begin and end in their buffer; empty for types whose rows are not contiguous."""
    width = _end_width(types, array.type)
    if width == 0 or not len(array):
        return 0, 0
    ends, end = array.buffers()[1], _ENDS[width]
    return end.unpack_from(ends, array.offset * width)[0], end.unpack_from(ends, (array.offset + len(array)) * width)[0]


def _byte_column(types: Any, array: Any) -> ByteColumn:
    """Copies the array without the rest of the array that it is a slice of."""
    first, last = _span(types, array)
    if not len(array):
        return ByteColumn(b"", bytes(8), 0, None, 0)
    width = _end_width(types, array.type)
    _, ends, data = array.buffers()
    packed = ends.slice(array.offset * width, (len(array) + 1) * width).to_pybytes()
    held = b"" if data is None else data.slice(first, last - first).to_pybytes()
    return ByteColumn(held, packed, first, *_validity(array), width)


def _number_column(array: Any) -> NumberColumn:
    return NumberColumn(_bytes_of(array, 8), *_validity(array))


def _bytes_of(array: Any, width: int) -> bytes:
    packed: bytes = array.buffers()[1].slice(array.offset * width, len(array) * width).to_pybytes()
    return packed


def _validity(array: Any) -> tuple[bytes | None, int]:
    """The bits that mark rows that are not null, and the index of the first row's bit; None if no row is null."""
    valid = array.buffers()[0]
    if valid is None or array.null_count == 0:
        return None, 0
    begin, end = array.offset // 8, (array.offset + len(array) + 7) // 8
    return valid.slice(begin, end - begin).to_pybytes(), array.offset % 8


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise IllegalStateException(
            "send_table() reads tables through pyarrow: pip install 'aioproducer[arrow]'"
        ) from error
    return pyarrow
