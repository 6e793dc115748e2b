from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import IllegalArgumentException, SerializationException
from aioproducer.outbox.row import Row, as_json, headers_of


@given(st.lists(st.tuples(st.text(), st.none() | st.binary())))
def test_headers_survive_json(headers: list[tuple[str, bytes | None]]) -> None:
    assert headers_of(json.dumps(as_json(headers))) == headers


def test_headers_without_repetition_are_an_object() -> None:
    assert as_json({"a": b"1", "b": None, "c": "x"}) == {"a": "1", "b": None, "c": "x"}
    assert as_json([("a", b"\xff"), ("a", b"\0")]) == [("a", {"base64": "/w=="}), ("a", {"base64": "AA=="})]


@pytest.mark.parametrize("headers", [[("a",)], [(1, b"x")], [("a", 1)], {"a": ["b"]}])
def test_what_is_no_header_is_refused(headers: object) -> None:
    with pytest.raises(IllegalArgumentException, match="is no header"):
        as_json(headers)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '{"a": 1}',
        '["ab"]',  # Python would take a text of two characters for a pair, and an object with two names
        '[{"a": "b", "c": "d"}]',
        '[["a"]]',
        '{"a": {"base64": "%"}}',
        '{"a": {}}',
        '{"a": {"base64": 1}}',
        "[" * 100_000 + "]" * 100_000,
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a": ' + "9" * 5_000 + "}",
    ],
    ids=lambda text: text[:30],
)
def test_headers_of_another_form_are_an_error(text: str) -> None:
    with pytest.raises(SerializationException, match="the headers of a row are"):
        headers_of(text)


def test_a_row_becomes_a_record() -> None:
    row = Row(7, "orders", 2, b"k", b"v", '{"a": "b"}', 1000)
    record = row.record()
    assert (record.topic, record.value, record.key, record.partition) == ("orders", b"v", b"k", 2)
    assert (record.timestamp_ms, record.headers) == (1000, [("a", b"b")])
    assert Row(7, "orders", None, None, None, None, 0).record().headers == row.bare_record().headers
