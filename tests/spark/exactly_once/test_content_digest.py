from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.spark.exactly_once.content_digest import ContentDigest

pa = pytest.importorskip("pyarrow")

SCHEMA = pa.schema(
    {
        "key": pa.string(),
        "value": pa.binary(),
        "partition": pa.int32(),
        "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    }
)
HEADER = st.fixed_dictionaries({"key": st.text(max_size=3), "value": st.binary(max_size=3)})
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.none() | st.text(max_size=5),
            "value": st.none() | st.binary(max_size=5),
            "partition": st.none() | st.integers(0, 9),
            "headers": st.none() | st.lists(HEADER, max_size=2),
        }
    ),
    max_size=12,
)


BYTES = pa.schema({"key": pa.binary(), "value": pa.binary()})


def digest_of(*batches: list[dict[str, Any]], schema: Any = SCHEMA) -> tuple[int, str]:
    digest = ContentDigest(schema.names)
    given = [pa.RecordBatch.from_pylist(batch, schema) for batch in batches]
    assert list(digest.through(iter(given))) == given
    return digest.rows, digest.text()


@given(ROWS, st.randoms(use_true_random=False), st.integers(0, 12))
def test_the_same_rows_in_any_order_and_any_batches_have_the_same_one(rows: Any, random: Any, cut: int) -> None:
    others = list(rows)
    random.shuffle(others)
    assert digest_of(rows) == digest_of(others[:cut], others[cut:])


@pytest.mark.parametrize(
    ("column", "other"),
    [
        ("key", None),
        ("key", ""),
        ("key", "l"),
        ("value", None),
        ("value", b""),
        ("value", b"w"),
        ("partition", 2),
        ("partition", None),
        ("headers", []),
        ("headers", [{"key": "h", "value": b"2"}]),
    ],
)
def test_a_row_that_differs_anywhere_has_another_one(column: str, other: Any) -> None:
    row = {"key": "k", "value": b"v", "partition": 1, "headers": [{"key": "h", "value": b"1"}]}
    rest = [{"key": "k", "value": b"v", "partition": 1, "headers": None}] * 3
    assert digest_of([row, *rest]) != digest_of([{**row, column: other}, *rest])


def test_values_that_changed_places_between_keys_have_another_one() -> None:
    assert digest_of(
        [{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}],
    ) != digest_of([{"key": "a", "value": b"2"}, {"key": "b", "value": b"1"}])


def test_texts_are_their_bytes() -> None:
    text, raw = ContentDigest(["value"]), ContentDigest(["value"])
    text.update(pa.record_batch({"value": ["ä", None]}))
    raw.update(pa.record_batch({"value": pa.array(["ä".encode(), None], pa.large_binary())}))
    assert (text.rows, text.text()) == (raw.rows, raw.text()) == (2, text.text())


def test_an_instant_is_the_same_in_every_time_zone() -> None:
    texts = set()
    for zone in ("UTC", "Europe/Berlin", None):
        digest = ContentDigest(["timestamp"])
        digest.update(pa.record_batch({"timestamp": pa.array([1_700_000_000_000_000, None], pa.timestamp("us", zone))}))
        texts.add(digest.text())
    assert len(texts) == 1
    later = ContentDigest(["timestamp"])
    later.update(pa.record_batch({"timestamp": pa.array([1_700_000_000_000_001, None], pa.timestamp("us", "UTC"))}))
    assert later.text() not in texts


def test_digests_stay_comparable_with_those_in_markers() -> None:
    """If this fails, digests are made in another way than before: ``marker.VERSION`` must rise."""
    schema = SCHEMA.append(pa.field("timestamp", pa.timestamp("us", "UTC")))
    digest = ContentDigest(schema.names)
    header = {"key": "h", "value": b"1"}
    row = {"key": "k", "value": b"v", "headers": [header], "timestamp": 1_700_000_000_000_000, "partition": 3}
    empty = {"key": None, "value": b"", "headers": None, "timestamp": None, "partition": None}
    digest.update(pa.RecordBatch.from_pylist([row, empty], schema))
    assert digest.text() == "d52ee58f4371c96d"


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=3), st.none() | st.binary(max_size=3)), max_size=6),
    st.lists(st.tuples(st.none() | st.binary(max_size=3), st.none() | st.binary(max_size=3)), max_size=6),
)
def test_two_digests_are_equal_only_if_the_rows_are(one: list[Any], other: list[Any]) -> None:
    """However their bytes are divided into columns and rows."""

    def counted(rows: list[Any]) -> list[str]:
        return sorted(map(repr, rows))

    made = [digest_of([{"key": key, "value": value} for key, value in rows], schema=BYTES) for rows in (one, other)]
    assert (made[0] == made[1]) == (counted(one) == counted(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(b"ab", b"c")], [(b"a", b"bc")]),
        ([(None, b"x")], [(b"\0null", b"x")]),
        ([(b"", b"x")], [(b"x", b"")]),
        ([(b"x", b"x"), (b"y", b"y")], [(b"x", b"y"), (b"y", b"x")]),
    ],
)
def test_bytes_in_other_columns_have_another_one(one: list[Any], other: list[Any]) -> None:
    made = [digest_of([{"key": key, "value": value} for key, value in rows], schema=BYTES) for rows in (one, other)]
    assert made[0] != made[1]


def test_values_that_rows_exchange_are_noticed() -> None:
    """Whatever the values: short numbers, as ranks and counters are, of sequential keys."""
    seen = set()
    for first in range(20):
        for second in range(20):
            rows = [{"key": b"user-1", "value": b"%d" % first}, {"key": b"user-2", "value": b"%d" % second}]
            seen.add(digest_of(rows, schema=BYTES))
    assert len(seen) == 400


@pytest.mark.parametrize(
    "kind", [pa.binary_view(), pa.large_binary(), pa.binary(2), pa.dictionary(pa.int8(), pa.binary()), pa.string_view()]
)
def test_bytes_are_the_same_in_whatever_form(kind: Any) -> None:
    values = pa.array([b"aa", None, b"bb", b"aa"])
    given = values.cast(pa.string()).cast(kind) if kind == pa.string_view() else pa.array(values.to_pylist(), kind)
    plain, other = ContentDigest(["value"]), ContentDigest(["value"])
    plain.update(pa.record_batch({"value": values}))
    other.update(pa.record_batch({"value": given}))
    assert plain.text() == other.text()


@pytest.mark.parametrize("as_map", [False, True])
def test_headers_that_are_not_text_count_by_their_bytes(as_map: bool) -> None:
    """The values of headers may have any; rows with such names are refused when they are sent."""

    def digest(*values: bytes) -> str:
        names = pa.array(["k"] * len(values))
        texts = pa.array(values, pa.binary()).view(pa.string())
        ends = list(range(len(values) + 1))
        fields = pa.StructArray.from_arrays([names, texts], ["key", "value"])
        made = pa.MapArray.from_arrays(ends, names, texts) if as_map else pa.ListArray.from_arrays(ends, fields)
        found = ContentDigest(["headers"])
        found.update(pa.record_batch({"headers": made}))
        return found.text()

    assert digest(b"a", b"\xff") == digest(b"\xff", b"a")
    assert len({digest(b"\xff"), digest(b"\xfe"), digest(b"a")}) == 3
