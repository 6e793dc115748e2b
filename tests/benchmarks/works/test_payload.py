from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.works.payload import FLIGHTS, HEADERS, TURN, Payload, write_payload


def test_payload_of_a_size(tmp_path: Path) -> None:
    for size in (1, 100, 1001):
        write_payload(tmp_path / "values", size)
        payload = Payload(tmp_path / "values", ["t"], keyed=False)
        assert [len(value) for value in payload.values] == [size]
        assert list(payload.records(3)) == [("t", None, payload.values[0])] * 3
        assert payload.headers is None


def test_payload_of_flights(tmp_path: Path) -> None:
    write_payload(tmp_path / "values", 0)
    payload = Payload(tmp_path / "values", ["t"], keyed=True)
    assert len(payload.values) == FLIGHTS
    assert all(value.count(b",") == 18 for value in payload.values)
    records = list(payload.records(FLIGHTS + 1))
    assert records[-1][2] == records[0][2] != records[1][2]
    assert {len(key) for _, key, _ in records if key is not None} == {16}
    assert payload.headers == HEADERS


def test_topics_take_turns(tmp_path: Path) -> None:
    write_payload(tmp_path / "values", 1)
    topics = [topic for topic, _, _ in Payload(tmp_path / "values", ["a", "b"], keyed=False).records(3 * TURN)]
    assert topics == ["a"] * TURN + ["b"] * TURN + ["a"] * TURN


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (3, [3]), (4, [4]), (9, [4, 4, 1])])
def test_chunks_are_all_records_in_order(tmp_path: Path, count: int, sizes: list[int]) -> None:
    path = tmp_path / "payload"
    path.write_bytes(b"a\nb\nc")
    payload = Payload(path, ["t"], keyed=True)
    chunks = [list(chunk) for chunk in payload.chunks(count, 4)]
    assert [len(chunk) for chunk in chunks] == sizes
    assert [record for chunk in chunks for record in chunk] == list(payload.records(count))
