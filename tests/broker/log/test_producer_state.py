from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.log.producer_state import NUM_BATCHES_TO_RETAIN, BatchMetadata, ProducerStateManager
from aioproducer.errors import InvalidProducerEpochException, OutOfOrderSequenceException
from aioproducer.records.batch_layout import MAX_SEQUENCE, decrement_sequence, increment_sequence

PRODUCER = 7


class Log:
    """Appends batches of one producer to a list, as a partition does."""

    def __init__(self) -> None:
        self.state = ProducerStateManager()
        self.next_offset = 0
        self.appended: list[tuple[int, int, int]] = []

    def produce(self, epoch: int, first: int, count: int) -> int:
        """The offset of the batch's first record; raises what the broker would answer."""
        last = increment_sequence(first, count - 1)
        kept = self.state.find_duplicate(PRODUCER, epoch, first, last)
        if kept is not None:
            return kept.first_offset
        self.state.validate(PRODUCER, epoch, first)
        offset = self.next_offset
        self.next_offset += count
        self.state.update(PRODUCER, epoch, BatchMetadata(last, self.next_offset - 1, count - 1, 0))
        self.appended.append((epoch, first, count))
        return offset


@pytest.mark.parametrize(
    ("sequence", "by", "result"),
    [(0, 0, 0), (0, 5, 5), (MAX_SEQUENCE, 1, 0), (MAX_SEQUENCE - 1, 1, MAX_SEQUENCE), (MAX_SEQUENCE - 2, 10, 7)],
)
def test_sequences_wrap_to_zero(sequence: int, by: int, result: int) -> None:
    assert increment_sequence(sequence, by) == result
    assert decrement_sequence(result, by) == sequence


def test_a_retained_batch_is_a_duplicate_of_the_first_one() -> None:
    log = Log()
    offsets = [log.produce(0, sequence, 10) for sequence in range(0, 50, 10)]
    assert [log.produce(0, sequence, 10) for sequence in range(0, 50, 10)] == offsets
    assert len(log.appended) == 5


def test_a_duplicate_older_than_the_retained_ones_is_out_of_order() -> None:
    log = Log()
    for sequence in range(NUM_BATCHES_TO_RETAIN + 1):
        log.produce(0, sequence, 1)
    with pytest.raises(OutOfOrderSequenceException):
        log.produce(0, 0, 1)
    assert log.produce(0, 1, 1) == 1


def test_a_batch_that_covers_other_sequences_is_no_duplicate() -> None:
    log = Log()
    log.produce(0, 0, 10)
    with pytest.raises(OutOfOrderSequenceException):
        log.produce(0, 0, 9)
    with pytest.raises(OutOfOrderSequenceException):
        log.produce(0, 5, 5)


def test_a_gap_is_out_of_order() -> None:
    log = Log()
    log.produce(0, 0, 10)
    with pytest.raises(OutOfOrderSequenceException):
        log.produce(0, 11, 1)
    assert log.produce(0, 10, 1) == 10


def test_after_the_last_sequence_comes_zero() -> None:
    log = Log()
    log.produce(0, MAX_SEQUENCE - 4, 5)
    assert log.produce(0, 0, 3) == 5
    assert log.produce(0, MAX_SEQUENCE - 4, 5) == 0


def test_a_batch_may_wrap_within() -> None:
    log = Log()
    log.produce(0, MAX_SEQUENCE - 1, 5)
    assert log.produce(0, MAX_SEQUENCE - 1, 5) == 0
    assert log.produce(0, 3, 1) == 5


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert Log().produce(3, 1234, 1) == 0


def test_a_newer_epoch_begins_at_zero() -> None:
    log = Log()
    log.produce(1, 0, 10)
    with pytest.raises(OutOfOrderSequenceException, match="epoch 2"):
        log.produce(2, 10, 1)
    assert log.produce(2, 0, 1) == 10
    assert log.produce(2, 1, 1) == 11


def test_an_older_epoch_is_refused_even_for_a_duplicate() -> None:
    log = Log()
    log.produce(1, 0, 10)
    log.produce(2, 0, 1)
    with pytest.raises(InvalidProducerEpochException):
        log.produce(1, 0, 10)


def test_the_same_sequences_in_a_newer_epoch_are_no_duplicate() -> None:
    log = Log()
    log.produce(0, 0, 10)
    assert log.produce(1, 0, 10) == 10


def test_producers_do_not_see_each_other() -> None:
    state = ProducerStateManager()
    state.update(1, 0, BatchMetadata(9, 9, 9, 0))
    assert state.find_duplicate(2, 0, 0, 9) is None
    state.validate(2, 0, 0)
    assert state.entry(2) is None


def test_only_the_latest_batches_are_kept() -> None:
    log = Log()
    for sequence in range(100):
        log.produce(0, sequence, 1)
    entry = log.state.entry(PRODUCER)
    assert entry is not None
    assert len(entry.batches) == NUM_BATCHES_TO_RETAIN
    assert entry.last_sequence == 99


@given(
    start=st.one_of(st.just(0), st.integers(MAX_SEQUENCE - 40, MAX_SEQUENCE)),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    data=st.data(),
)
def test_any_retries_within_the_window_leave_each_batch_once_and_in_order(
    start: int, sizes: list[int], data: st.DataObject
) -> None:
    """A producer with at most five batches unresolved, whose requests and responses get lost in any way it can happen:
    it resends any batch of its window at any time, and continues when the oldest is answered."""
    batches = []
    sequence = start
    for size in sizes:
        batches.append((0, sequence, size))
        sequence = increment_sequence(sequence, size)
    log = Log()
    # The first one is answered before others follow: a producer that the broker does not know may begin anywhere.
    offsets = {0: log.produce(*batches[0])}
    oldest = 1
    while oldest < len(batches):
        window = range(oldest, min(oldest + NUM_BATCHES_TO_RETAIN, len(batches)))
        for index in data.draw(st.lists(st.sampled_from(window), max_size=8), label="resent"):
            try:
                offset = log.produce(*batches[index])
            except OutOfOrderSequenceException:
                assert index not in offsets
            else:
                assert offsets.setdefault(index, offset) == offset
        offset = log.produce(*batches[oldest])
        assert offsets.setdefault(oldest, offset) == offset
        oldest += 1
    assert log.appended == batches
    assert [offsets[index] for index in range(len(batches))] == [sum(sizes[:index]) for index in range(len(sizes))]


@given(
    sends=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(1, 3)), max_size=60),
)
def test_the_log_has_no_gap_and_no_repetition_whatever_batches_are_sent(sends: list[tuple[int, int, int]]) -> None:
    log = Log()
    for epoch, first, count in sends:
        try:
            log.produce(epoch, first, count)
        except (OutOfOrderSequenceException, InvalidProducerEpochException):
            continue
    expected: tuple[int, int] | None = None
    for epoch, first, count in log.appended:
        if expected is not None:
            known_epoch, next_sequence = expected
            assert (epoch == known_epoch and first == next_sequence) or (epoch > known_epoch and first == 0)
        expected = (epoch, first + count)
