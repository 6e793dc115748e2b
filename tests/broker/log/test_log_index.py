from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.log.log_index import LogIndex

SIZE = 70

BATCHES = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 20)), max_size=12)
"""Records in each, and the largest timestamp of them."""


@given(batches=BATCHES, deleted=st.integers(0, 12), wanted=st.integers(0, 60))
def test_the_index_finds_the_same_as_a_look_at_each_batch(
    batches: list[tuple[int, int]], deleted: int, wanted: int
) -> None:
    begins = list(accumulate((count for count, _ in batches), initial=0))[: len(batches)]
    index = LogIndex()
    for begin, (_, timestamp) in zip(begins, batches, strict=True):
        index.append(begin, timestamp, SIZE + timestamp)
    index.delete(deleted)
    begins = begins[deleted:]
    timestamps = list(accumulate((timestamp for _, timestamp in batches), max))[deleted:]
    assert (index.base_offsets, index.max_timestamps) == (begins, timestamps)
    assert len(index) == len(begins)
    assert index.place_of(wanted) == max((place for place, begin in enumerate(begins) if begin <= wanted), default=-1)
    assert index.count_before(wanted) == sum(begin < wanted for begin in begins)
    sizes = [SIZE + timestamp for _, timestamp in batches][deleted:]
    for last in range(len(index) + 1):
        assert [index.size(first, last) for first in range(last + 1)] == [sum(sizes[at:last]) for at in range(last + 1)]
    later = [place for place, timestamp in enumerate(timestamps) if timestamp >= wanted]
    assert index.place_of_timestamp(wanted) == min(later, default=len(timestamps))
