"""The planning of offsets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.spark.source.offset_plan import (
    OffsetRange,
    from_json,
    impossible,
    limited,
    losses,
    ranges,
    readable,
    split,
    to_json,
    unread,
)
from aioproducer.types import TopicPartition

A, B, C, D = (TopicPartition(topic, partition) for topic in "tu" for partition in (0, 1))
sizes = st.lists(st.integers(0, 1000) | st.integers(0, 3), max_size=8)


def of_sizes(sizes: list[int], begin: int = 100) -> list[OffsetRange]:
    return [OffsetRange("t", partition, begin, begin + size) for partition, size in enumerate(sizes)]


def test_offsets_are_kept_as_sparks_kafka_source_keeps_them() -> None:
    offsets = {C: 7, B: 2, A: 1}
    assert to_json(offsets) == {"t": {"0": 1, "1": 2}, "u": {"0": 7}}
    assert from_json(to_json(offsets)) == offsets


@given(sizes, st.none() | st.integers(1, 40), st.none() | st.integers(1, 400))
def test_pieces_are_all_there_and_small_and_many_enough(
    sizes: list[int], min_partitions: int | None, max_records: int | None
) -> None:
    pieces = split(of_sizes(sizes), min_partitions, max_records)
    for partition, size in enumerate(sizes):
        own = [piece for piece in pieces if piece.partition == partition]
        offsets = [offset for piece in own for offset in range(piece.begin, piece.end)]
        assert offsets == list(range(100, 100 + size)), "each offset once, in order"
        assert not own or max(piece.size for piece in own) - min(piece.size for piece in own) <= 1
    assert all(0 < piece.size <= (max_records or 10**9) for piece in pieces)
    assert len(pieces) >= min(min_partitions or 0, sum(sizes))
    if min_partitions is None and max_records is None:
        assert pieces == [each for each in of_sizes(sizes) if each.size]


@given(sizes, st.integers(1, 2000))
def test_a_limit_is_kept_and_shared_out(sizes: list[int], limit: int) -> None:
    begins = {TopicPartition("t", partition): 5 for partition in range(len(sizes))}
    ends = {partition: 5 + size for partition, size in zip(begins, sizes, strict=True)}
    chosen = limited(begins, ends, limit)
    taken = [chosen[partition] - 5 for partition in begins]
    assert sum(taken) == min(limit, sum(sizes))
    assert all(0 <= got <= size for got, size in zip(taken, sizes, strict=True))
    waiting = [(size, got) for size, got in zip(sizes, taken, strict=True) if size]
    if limit >= len(waiting):
        assert all(got >= 1 for _, got in waiting), "no partition is left out"
        total = sum(size for size, _ in waiting)
        spare = limit - len(waiting)
        if total > limit:
            assert all(abs(got - 1 - spare * (size - 1) / (total - len(waiting))) <= 1 for size, got in waiting)


def test_a_partition_that_ended_before_where_it_was_read_to_keeps_its_end() -> None:
    assert limited({A: 10, B: 0}, {A: 3, B: 100}, 5) == {A: 3, B: 5}


def test_ranges_lie_between() -> None:
    assert ranges({A: 1, B: 2, C: 3}, {C: 3, A: 9}) == [OffsetRange("t", 0, 1, 9), OffsetRange("u", 0, 3, 3)]


def test_impossible_offset_ranges_are_named() -> None:
    begins, ends = {A: 5, B: 3, C: 9}, {A: 4, B: 8, C: 2}
    assert impossible(begins, ends, [A, B], {B: 7}, committed=False) == [
        "t-0 is to be read from offset 5 to 4",
        "t-1 is to be read up to offset 8, and its log ends at 7",
    ]
    assert impossible(begins, ends, [], {B: 7}, committed=True) == [
        "t-1 is to be read up to offset 8, and the last stable offset, where a transaction may be open, is 7",
    ]
    assert impossible(begins, ends, [], {B: 8}, committed=False) == []


def test_only_partitions_with_unread_offsets_are_looked_up() -> None:
    assert unread({A: 5, B: 6, C: 7}, {A: 5, B: 9, D: 0}) == [B, D]


def test_losses_are_named() -> None:
    assert losses({A: 5, B: 6}, {A: 5, B: 9}, {B: 6}) == [], "nothing is to be read of the first"
    assert losses({A: 5, B: 6, C: 7}, {A: 9, B: 4, D: 8}, {A: 7, D: 3}) == [
        "t-1 ends at offset 4, and it was read up to 6: was the topic deleted and created anew?",
        "u-0 is gone: it was read up to offset 7",
        "t-0 begins at offset 7: those from 5 on were deleted",
        "u-1, which is new, begins at offset 3: those before it were deleted",
    ]


def test_a_topic_that_is_gone_when_its_batch_is_planned_again() -> None:
    begins, ends = {A: 5, B: 9}, {A: 8, B: 9, C: 0, D: 4}
    assert losses(begins, ends, {}) == [
        "t-0 is gone: it was to be read from offset 5 to 8",
        "u-1 is gone: it was to be read from offset 0 to 4",
    ]
    assert readable(begins, ends, {D: 1}) == [OffsetRange("u", 1, 1, 4)]


def test_readable_ranges_are_left_after_losses() -> None:
    begins, ends = {A: 5, B: 6, C: 1}, {A: 9, B: 8, C: 3, D: 2}
    assert readable(begins, ends, {A: 7, B: 0, C: 10, D: 1}) == [
        OffsetRange("t", 0, 7, 9),
        OffsetRange("t", 1, 6, 8),
        OffsetRange("u", 1, 1, 2),
    ]
