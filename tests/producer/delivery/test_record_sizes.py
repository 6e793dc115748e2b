from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.delivery.record_sizes import RecordSizes, key_size_at, timestamp_delta_at, value_size_at

entry = st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-1, 2**31 - 1), st.integers(-1, 2**31 - 1))


@given(entries=st.lists(entry, max_size=20))
def test_gives_back_what_was_appended(entries: list[tuple[int, int, int]]) -> None:
    sizes = RecordSizes()
    for each in entries:
        sizes.append(*each)
    frozen = sizes.freeze()
    assert len(frozen) == 16 * len(entries)
    assert entries == [
        (timestamp_delta_at(frozen, index), key_size_at(frozen, index), value_size_at(frozen, index))
        for index in range(len(entries))
    ]


def test_frozen_sizes_stay_when_the_buffer_is_used_again() -> None:
    sizes = RecordSizes()
    sizes.append(1, 2, 3)
    frozen = sizes.freeze()
    sizes.clear()
    assert sizes.freeze() == b""
    sizes.append(4, 5, 6)
    assert value_size_at(frozen, 0) == 3
    assert timestamp_delta_at(sizes.freeze(), 0) == 4
