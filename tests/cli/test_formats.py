from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.cli import formats
from aioproducer.cli.formats import (
    BadInput,
    CsvParser,
    Format,
    InputRecord,
    LinesParser,
    NdjsonParser,
    Parser,
    parser,
    read_lines,
)
from aioproducer.cli.running import InputError


async def chunks_of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def lines_of(*chunks: bytes) -> list[bytes]:
    return [line async for lines in read_lines(chunks_of(*chunks)) for line in lines]


def parse(parser: Parser, text: bytes) -> list[InputRecord | BadInput]:
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [*parser.parse(lines), *parser.end()]


def pairs(items: Iterable[InputRecord | BadInput]) -> list[tuple[bytes | None, bytes]]:
    return [(item.key, item.value) for item in items if isinstance(item, InputRecord)]


# Lines


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([], []),
        ([b"a"], [b"a"]),
        ([b"a\n"], [b"a"]),
        ([b"a\n\nb"], [b"a", b"", b"b"]),
        ([b"\n"], [b""]),
        ([b"a", b"b", b"c\nd", b"e\n", b"f"], [b"abc", b"de", b"f"]),
        ([b"a\r\nb\rc\n"], [b"a\r", b"b\rc"]),
        ([b"\xff\x00\n\x80"], [b"\xff\x00", b"\x80"]),
    ],
)
async def test_lines_end_with_newlines(chunks: list[bytes], lines: list[bytes]) -> None:
    assert await lines_of(*chunks) == lines


@given(st.lists(st.binary(max_size=5).map(lambda data: data.replace(b"a", b"\n"))))
def test_lines_do_not_depend_on_chunks(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert asyncio.run(lines_of(*[chunk for chunk in chunks if chunk])) == expected


async def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "LINE_LIMIT", 10)
    assert await lines_of(b"1234567890\n", b"12345", b"67890") == [b"1234567890"] * 2
    with pytest.raises(InputError, match="line 3 has more than"):
        await lines_of(b"a\nb\n123456", b"78901", b"2\n")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("-", Format.LINES),
        ("x.txt", Format.LINES),
        ("x.csv", Format.CSV),
        ("x.CSV", Format.CSV),
        ("x.csv.gz", Format.CSV),
        ("/a.csv/x.ndjson.xz", Format.NDJSON),
        ("x.jsonl.zst", Format.NDJSON),
        ("x.gz", Format.LINES),
    ],
)
def test_the_suffix_names_the_format(name: str, format: Format) -> None:
    assert Format.of(name) is format


def test_lines() -> None:
    assert parse(LinesParser(), b"a\n\nb\r\n\xff") == [
        InputRecord(1, b"a", None, b"a"),
        InputRecord(2, b"", None, b""),
        InputRecord(3, b"b\r", None, b"b"),
        InputRecord(4, b"\xff", None, b"\xff"),
    ]


def test_lines_with_keys() -> None:
    assert parse(LinesParser("::"), b"a::b::c\nd\n::e\nf::\r\n") == [
        InputRecord(1, b"a::b::c", b"a", b"b::c"),
        BadInput(2, b"d", "no key", "the line has no '::'"),
        InputRecord(3, b"::e", b"", b"e"),
        InputRecord(4, b"f::\r", b"f", b""),
    ]


# NDJSON


def test_ndjson_is_sent_as_it_is() -> None:
    text = b'{"a": 1,  "b":2}\r\n\n  \n[1]\n"x"\n'
    assert parse(NdjsonParser(), text) == [
        InputRecord(1, b'{"a": 1,  "b":2}\r', None, b'{"a": 1,  "b":2}'),
        InputRecord(4, b"[1]", None, b"[1]"),
        InputRecord(5, b'"x"', None, b'"x"'),
    ]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ('"x"', b"x"),
        ('"ä"', "ä".encode()),
        ('""', b""),
        ("null", None),
        ("1.50", b"1.5"),
        ("true", b"true"),
        ("[1, 2]", b"[1,2]"),
    ],
)
def test_the_key_of_ndjson(value: str, key: bytes | None) -> None:
    (record,) = parse(NdjsonParser("k"), f'{{"k": {value}}}'.encode())
    assert isinstance(record, InputRecord)
    assert record.key == key


@pytest.mark.parametrize(
    ("line", "cause", "detail"),
    [
        (b"{", "invalid JSON", "Expecting property name"),
        (b"{} {}", "invalid JSON", "Extra data"),
        (b'{"k": NaN}', "invalid JSON", "NaN is not a JSON value"),
        (b'{"k": "\xff"}', "invalid JSON", "utf-8"),
        (b'{"k": "\\ud800"}', "invalid JSON", "surrogates"),
        (b"[" * 100_000, "invalid JSON", "nested too deeply"),
        (b"{}", "no key", "the object has no field 'k'"),
        (b"[1]", "no key", "a list, not an object"),
        (b"null", "no key", "a NoneType, not an object"),
    ],
)
def test_bad_ndjson(line: bytes, cause: str, detail: str) -> None:
    (bad,) = parse(NdjsonParser("k"), line)
    assert isinstance(bad, BadInput)
    assert (bad.line, bad.raw, bad.cause) == (1, line, cause)
    assert detail in bad.detail


# CSV


def test_csv_is_sent_as_json() -> None:
    made = CsvParser("b")
    assert parse(made, b'a,b\r\n1,x\r\n"2, too","y ""z"""\n3,\n') == [
        InputRecord(2, b"1,x\r", b"x", b'{"a":"1","b":"x"}'),
        InputRecord(3, b'"2, too","y ""z"""', b'y "z"', b'{"a":"2, too","b":"y \\"z\\""}'),
        InputRecord(4, b"3,", None, b'{"a":"3","b":""}'),
    ]
    assert made.heading == b"a,b\r"


def test_quoted_csv_fields_may_hold_newlines() -> None:
    made = CsvParser("a")
    text = b'a,b\n1,"x\ny\r\n\nz"\n2,w\n'
    assert parse(made, text) == [
        InputRecord(2, b'1,"x\ny\r\n\nz"', b"1", b'{"a":"1","b":"x\\ny\\r\\n\\nz"}'),
        InputRecord(6, b"2,w", b"2", b'{"a":"2","b":"w"}'),
    ]


def test_a_byte_order_mark_is_no_part_of_a_name() -> None:
    assert pairs(parse(CsvParser("a"), b"\xef\xbb\xbfa,b\n1,2\n")) == [(b"1", b'{"a":"1","b":"2"}')]


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        (b"1", "the number of fields is 1, and the heading names 2"),
        (b"1,2,3", "the number of fields is 3, and the heading names 2"),
        (b"\xff,2", "utf-8"),
        (b'"1"x,2', "expected"),
        (b'1,"2', "a quote is never closed"),
        (b'1,"2\n3\n', "a quote is never closed"),
    ],
)
def test_bad_csv(row: bytes, detail: str) -> None:
    bad = parse(CsvParser(), b"a,b\n" + row)[0]
    assert isinstance(bad, BadInput)
    assert (bad.line, bad.raw, bad.cause) == (2, row.removesuffix(b"\n"), "invalid CSV")
    assert detail in bad.detail


def test_a_quote_that_is_not_closed_takes_no_more_than_so_much_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "CSV_RECORD_LIMIT", 12)
    assert parse(CsvParser(), b'a,b\n1,"2\n34,56\n78,90\n1,2\n') == [
        BadInput(2, b'1,"2\n34,56\n78,90', "invalid CSV", "a quote is never closed"),
        InputRecord(5, b"1,2", None, b'{"a":"1","b":"2"}'),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a,b,a\n", "several columns have the name 'a'"),
        (b"a,c\n", "there is no column 'b' for the key; there are a, c"),
        (b"\xff\n", "line 1: no names of columns"),
        (b'"a\n', "line 1: a quote is never closed"),
    ],
)
def test_csv_without_a_proper_heading(text: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(CsvParser("b"), text)


def test_empty_csv() -> None:
    assert parse(CsvParser("a"), b"") == parse(CsvParser("a"), b"\n\na,b\n\n") == []


@given(
    st.lists(st.lists(st.text(alphabet='ab,"\n\r é', max_size=4), min_size=2, max_size=2), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
)
def test_csv_written_by_python_is_read(rows: list[list[str]], end: str) -> None:
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator=end)
    writer.writerows([["x", "y"], *rows])
    items = parse(CsvParser(), file.getvalue().encode())
    assert [json.loads(value) for _, value in pairs(items)] == [{"x": x, "y": y} for x, y in rows]
    assert len(items) == len(rows)


@given(st.binary(max_size=40).map(lambda data: data.replace(b"q", b'"').replace(b"n", b"\n")))
def test_nothing_of_the_input_is_lost(data: bytes) -> None:
    made = CsvParser()
    items = parse(made, b"a,b\n" + data)
    kept = [line for item in items for line in item.raw.split(b"\n")]
    assert [line for line in kept if line.strip()] == [line for line in data.split(b"\n") if line.strip()]


# Which


@pytest.mark.parametrize(
    ("format", "kind"), [(Format.LINES, LinesParser), (Format.NDJSON, NdjsonParser), (Format.CSV, CsvParser)]
)
def test_each_format_has_its_parser(format: Format, kind: type[Any]) -> None:
    assert type(parser(format, None, None)) is kind
