from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.log.leader_epochs import UNDEFINED, EpochEndOffset, LeaderEpochs


def test_the_end_offset_of_an_epoch_is_found() -> None:
    epochs = LeaderEpochs()
    assert epochs.latest == -1
    epochs.begin(2, 0)
    epochs.begin(5, 10)
    assert epochs.latest == 5
    assert epochs.end_offset_of(-1, 5, 12) == UNDEFINED
    assert epochs.end_offset_of(1, 5, 12) == EpochEndOffset(1, 0), "smaller than all that there are"
    assert epochs.end_offset_of(2, 5, 12) == EpochEndOffset(2, 10)
    assert epochs.end_offset_of(4, 5, 12) == EpochEndOffset(2, 10)
    assert epochs.end_offset_of(5, 5, 12) == EpochEndOffset(5, 12)
    assert epochs.end_offset_of(6, 5, 12) == UNDEFINED


def test_the_current_one_may_have_no_records() -> None:
    epochs = LeaderEpochs([(2, 0)])
    assert epochs.end_offset_of(2, 7, 12) == EpochEndOffset(2, 12)
    assert epochs.end_offset_of(5, 7, 12) == EpochEndOffset(2, 12)
    assert epochs.end_offset_of(7, 7, 12) == EpochEndOffset(7, 12)
    assert LeaderEpochs().end_offset_of(7, 7, 0) == EpochEndOffset(7, 0)
    assert LeaderEpochs().end_offset_of(3, 7, 0) == EpochEndOffset(3, 0)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=6), st.integers(0, 30), st.integers(0, 20))
def test_deleted_records_change_nothing_behind_them(steps: list[tuple[int, int]], start: int, epoch: int) -> None:
    whole, part = LeaderEpochs(), LeaderEpochs()
    current = offset = 0
    for epochs_on, records in steps:
        current += epochs_on
        for one in (whole, part):
            one.begin(current, offset)
        offset += records
    start = min(start, offset)
    part.delete_before(start)
    assert part.latest == whole.latest
    assert all(first >= start for _, first in part.entries())
    before = whole.end_offset_of(epoch, current, offset)
    if before.end_offset > start:
        assert part.end_offset_of(epoch, current, offset) == before
    assert LeaderEpochs(part.entries()).entries() == part.entries()


def test_the_epoch_of_an_offset_is_found() -> None:
    epochs = LeaderEpochs([(2, 5), (5, 10)])
    assert [epochs.at(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 2, 2, 5, 5]
