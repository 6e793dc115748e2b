"""From lines of input to records: plain lines, NDJSON, CSV.

Each parser takes lines without their newlines. It returns each record with the input it came from, so that an
undelivered record can be kept and sent again unchanged. Input that is not a record becomes a :class:`BadInput` with the
reason.
"""

from __future__ import annotations

import csv
import json
from collections.abc import AsyncIterator, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from aioproducer.cli.running import InputError

LINE_LIMIT = 64 * 1024 * 1024
"""The longest line in bytes; input with longer lines is not text."""

CSV_RECORD_LIMIT = 1024 * 1024
"""The longest CSV record of several lines, in bytes; in a longer one the quote counts as never closed."""


class Format(StrEnum):
    """The format of the input."""

    LINES = "lines"
    NDJSON = "ndjson"
    CSV = "csv"

    @classmethod
    def of(cls, path: str) -> Format:
        """The format that the file's name says, without the suffix of a compression."""
        name = Path(path)
        suffix = name.with_suffix("").suffix if name.suffix in (".gz", ".xz", ".zst") else name.suffix
        return {".csv": cls.CSV, ".ndjson": cls.NDJSON, ".jsonl": cls.NDJSON}.get(suffix.lower(), cls.LINES)


class InputRecord(NamedTuple):
    """A record to send."""

    line: int
    """The number of its (first) line, from 1."""
    raw: bytes
    """The input it came from, without the last newline."""
    key: bytes | None
    value: bytes


class BadInput(NamedTuple):
    """Input that is not a record."""

    line: int
    raw: bytes
    cause: str
    detail: str


class Parser(Protocol):
    """Reads one format."""

    heading: bytes | None
    """The line to write before kept records, once it was read: the names of CSV's columns."""

    def parse(self, lines: list[bytes]) -> Iterator[InputRecord | BadInput]:
        """The records that end within these lines, which are the next ones of the input."""

    def end(self) -> Iterator[InputRecord | BadInput]:
        """The remaining records, after the end of the input."""


async def read_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The lines of each chunk, without their newlines; a last line without one counts. Raises InputError."""
    pieces: list[bytes] = []
    size = 0
    number = 1
    async for chunk in chunks:
        lines = chunk.split(b"\n")
        if len(lines) > 1:
            pieces.append(lines[0])
            lines[0] = b"".join(pieces)
            pieces = [lines.pop()]
            size = len(pieces[0])
            number += len(lines)
            yield lines
        else:
            pieces.append(chunk)
            size += len(chunk)
        if size > LINE_LIMIT:
            raise InputError(f"line {number} has more than {LINE_LIMIT // 2**20} MiB: this is not a text file")
    last = b"".join(pieces)
    if last:
        yield [last]


def parser(format: Format, key_field: str | None, key_separator: str | None) -> Parser:
    """The parser for a format; ``key_separator`` is for lines, ``key_field`` for the others."""
    match format:
        case Format.LINES:
            return LinesParser(key_separator)
        case Format.NDJSON:
            return NdjsonParser(key_field)
        case Format.CSV:
            return CsvParser(key_field)


class LinesParser:
    """One record per line: its value is the line without its end (``\\n`` or ``\\r\\n``), with any bytes.

    With a separator, the first one in a line separates the key from the value.
    """

    heading: bytes | None = None

    def __init__(self, separator: str | None = None) -> None:
        self._separator = None if separator is None else separator.encode()
        self._line = 0

    def parse(self, lines: list[bytes]) -> Iterator[InputRecord | BadInput]:
        separator = self._separator
        for raw in lines:
            self._line += 1
            value = raw.removesuffix(b"\r")
            if separator is None:
                yield InputRecord(self._line, raw, None, value)
                continue
            key, found, value = value.partition(separator)
            if found:
                yield InputRecord(self._line, raw, key, value)
            else:
                yield BadInput(self._line, raw, "no key", f"the line has no {separator.decode()!r}")

    def end(self) -> Iterator[InputRecord | BadInput]:
        return iter(())


class NdjsonParser:
    """One JSON value per line: the record's value is the unchanged line. Empty lines are skipped.

    With a key field, each value must be an object that has this field. A string is the key itself, null means no key,
    anything else is the key as JSON.
    """

    heading: bytes | None = None

    def __init__(self, key_field: str | None = None) -> None:
        self._key_field = key_field
        self._line = 0

    def parse(self, lines: list[bytes]) -> Iterator[InputRecord | BadInput]:
        for raw in lines:
            self._line += 1
            value = raw.removesuffix(b"\r")
            if not value.strip():
                continue
            try:
                key = self._key(json.loads(value.decode(), parse_constant=_no_json))
            except ValueError as error:  # JSONDecodeError and UnicodeDecodeError among them
                yield BadInput(self._line, raw, "invalid JSON", str(error))
            except RecursionError:
                yield BadInput(self._line, raw, "invalid JSON", "arrays and objects are nested too deeply")
            except LookupError as error:
                yield BadInput(self._line, raw, "no key", str(error.args[0]))
            else:
                yield InputRecord(self._line, raw, key, value)

    def _key(self, value: Any) -> bytes | None:
        if self._key_field is None:
            return None
        if not isinstance(value, dict):
            raise LookupError(f"a {type(value).__name__}, not an object with a field {self._key_field!r}")
        if self._key_field not in value:
            raise LookupError(f"the object has no field {self._key_field!r}")
        key = value[self._key_field]
        if key is None:
            return None
        return key.encode() if isinstance(key, str) else _as_json(key)

    def end(self) -> Iterator[InputRecord | BadInput]:
        return iter(())


class CsvParser:
    """CSV in UTF-8 whose first record names the columns: the value is a JSON object, from column to text.

    Quoted fields may contain newlines. The key is the text of the key field; empty means no key.
    """

    def __init__(self, key_field: str | None = None) -> None:
        self.heading: bytes | None = None
        self._key_field = key_field
        self._key_index = -1
        self._columns: list[str] = []
        self._line = 0
        # The lines of a record that is not complete.
        self._open: list[bytes] = []
        self._open_size = 0
        self._in_quotes = False
        csv.field_size_limit(LINE_LIMIT)

    def parse(self, lines: list[bytes]) -> Iterator[InputRecord | BadInput]:
        for raw in lines:
            self._line += 1
            if not self._open and b'"' not in raw:
                yield from self._record(self._line, raw)
                continue
            self._open.append(raw)
            self._open_size += len(raw) + 1
            # A quote within a quoted field is doubled, so an odd number of them opens a field or closes it.
            if raw.count(b'"') % 2:
                self._in_quotes = not self._in_quotes
            if not self._in_quotes:
                yield from self._record(*self._taken())
            elif self._open_size > CSV_RECORD_LIMIT:
                yield self._never_closed()

    def end(self) -> Iterator[InputRecord | BadInput]:
        if self._open:
            yield self._never_closed()

    def _taken(self) -> tuple[int, bytes]:
        """The lines gathered so far, as one record, and the number of the first."""
        record = b"\n".join(self._open)
        first = self._line - len(self._open) + 1
        self._open, self._open_size, self._in_quotes = [], 0, False
        return first, record

    def _never_closed(self) -> BadInput:
        line, raw = self._taken()
        if self.heading is None:
            raise InputError(f"line {line}: a quote is never closed")
        return BadInput(line, raw, "invalid CSV", "a quote is never closed")

    def _record(self, line: int, raw: bytes) -> Iterator[InputRecord | BadInput]:
        if not raw.strip():
            return
        try:
            text = raw.decode("utf-8-sig" if self.heading is None else "utf-8").removesuffix("\r")
            fields = next(csv.reader([text], strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            if self.heading is None:
                raise InputError(f"line {line}: no names of columns: {error}") from error
            yield BadInput(line, raw, "invalid CSV", str(error))
            return
        if self.heading is None:
            self._take_heading(raw, fields)
        elif len(fields) != len(self._columns):
            detail = f"the number of fields is {len(fields)}, and the heading names {len(self._columns)}"
            yield BadInput(line, raw, "invalid CSV", detail)
        else:
            key = fields[self._key_index].encode() or None if self._key_index >= 0 else None
            yield InputRecord(line, raw, key, _as_json(dict(zip(self._columns, fields, strict=True))))

    def _take_heading(self, raw: bytes, columns: list[str]) -> None:
        doubled = {name for name in columns if columns.count(name) > 1}
        if doubled:
            raise InputError(f"line 1: several columns have the name {doubled.pop()!r}")
        if self._key_field is not None:
            if self._key_field not in columns:
                raise InputError(f"there is no column {self._key_field!r} for the key; there are {', '.join(columns)}")
            self._key_index = columns.index(self._key_field)
        self.heading = raw
        self._columns = columns


def _as_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")
