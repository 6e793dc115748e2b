from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch, ProducerIds
from aioproducer.producer.idempotence.sequences import (
    MAX_EPOCH,
    REMEMBERED_MS,
    WINDOW,
    PartitionSequences,
)
from aioproducer.records.batch_layout import increment_sequence
from tests.producer.simulations.standing_loop import Loop, make_batch, make_ids
from tests.support.splitting import split


def ids_of(producer_id: int = 7, epoch: int = 0) -> ProducerIds:
    ids = make_ids()
    ids.current = ProducerIdAndEpoch(producer_id, epoch)
    return ids


def stamped(sequences: PartitionSequences, records: int = 1) -> ProducerBatch:
    assert sequences.may_drain_new()
    batch = make_batch(Loop(), records=records)
    sequences.stamp(batch, 0.0, 0)
    return batch


def send(sequences: PartitionSequences, batch: ProducerBatch) -> None:
    """As the Sender prepares a batch; it is not marked as under way."""
    if not batch.has_sequence():
        sequences.stamp(batch, 0.0, 0)
    batch.log = sequences.log


def sent(sequences: PartitionSequences, records: int = 1) -> ProducerBatch:
    assert sequences.may_drain_new()
    batch = make_batch(Loop(), records=records)
    send(sequences, batch)
    return batch


def stamp_of(batch: ProducerBatch) -> tuple[int, int, int]:
    return batch.producer_id, batch.producer_epoch, batch.base_sequence


def known(ids: ProducerIds, window: int = WINDOW) -> PartitionSequences:
    """The sequences of a partition whose log has a batch of the producer, of 10 records."""
    sequences = PartitionSequences(ids, window)
    sequences.resolve(stamped(sequences, 10))
    return sequences


@pytest.mark.parametrize(
    ("sequence", "by", "next_one"),
    [(0, 1, 1), (0, 0, 0), (2**31 - 1, 1, 0), (2**31 - 2, 1, 2**31 - 1), (2**31 - 3, 10, 7)],
)
def test_after_the_largest_sequence_comes_zero(sequence: int, by: int, next_one: int) -> None:
    assert increment_sequence(sequence, by) == next_one


def test_kafkas_limits() -> None:
    assert (WINDOW, MAX_EPOCH) == (5, 32767)


@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=20), first=st.sampled_from([0, 2**31 - 50]))
def test_sequences_follow_each_other_by_the_number_of_records(counts: list[int], first: int) -> None:
    sequences = PartitionSequences(ids_of(7, 3))
    sequences.next_sequence = first
    expected = first
    for count in counts:
        batch = stamped(sequences, count)
        assert stamp_of(batch) == (7, 3, expected)
        expected = (expected + count) % 2**31
        sequences.resolve(batch)


def test_without_a_producer_id_nothing_goes() -> None:
    assert not PartitionSequences(make_ids()).may_drain_new()


@pytest.mark.parametrize("window", [1, 2, 5, 20])
def test_at_most_a_window_is_unresolved(window: int) -> None:
    sequences = known(ids_of(), window)
    batches = [stamped(sequences) for _ in range(window)]
    assert not sequences.may_drain_new()
    sequences.resolve(batches[0])
    assert sequences.is_lowest(batches[1]) if window > 1 else not sequences.unresolved
    assert sequences.may_drain_new()


@pytest.mark.parametrize("window", [2, 5, 20])
def test_the_window_begins_with_the_lowest_unresolved(window: int) -> None:
    """It may have to be sent again, and the broker knows it by the last batches only."""
    sequences = known(ids_of(), window)
    late, *others = [stamped(sequences) for _ in range(window)]
    for batch in others[:-1]:
        sequences.resolve(batch)
        assert not sequences.may_drain_new()
    sequences.resolve(late)
    assert sequences.is_lowest(others[-1])
    for _ in range(window - 1):
        assert sequences.may_drain_new()
        stamped(sequences)
    assert not sequences.may_drain_new()


def test_a_window_may_become_smaller_while_it_is_full() -> None:
    sequences = known(ids_of(), window=20)
    batches = [stamped(sequences) for _ in range(12)]
    sequences.window = 5
    for batch in batches[:7]:
        assert not sequences.may_drain_new()
        sequences.resolve(batch)
    assert not sequences.may_drain_new()
    sequences.resolve(batches[7])
    assert sequences.may_drain_new()


def test_until_the_broker_knows_the_producer_one_batch_goes_at_a_time() -> None:
    """It takes any sequence as the first: were the first batch refused, the second would be taken in its place."""
    sequences = PartitionSequences(ids_of())
    first = stamped(sequences)
    assert not sequences.may_drain_new()
    sequences.abandon(first)  # refused for good: still nothing is in the log
    second = stamped(sequences)
    assert not sequences.may_drain_new()
    sequences.resolve(second)
    for _ in range(WINDOW):
        stamped(sequences)


@pytest.mark.parametrize("proven", [False, True])
def test_a_new_log_knows_nobody(proven: bool) -> None:
    sequences = known(ids_of())
    sequences.log_is_new(proven=proven)
    batch = sent(sequences)
    assert stamp_of(batch) == (7, 0, 10)  # it takes any sequence
    assert not sequences.may_drain_new()
    sequences.resolve(batch)
    for _ in range(WINDOW):
        stamped(sequences)


def test_an_answer_of_the_old_log_says_nothing_of_the_new_one() -> None:
    sequences = known(ids_of())
    late = sent(sequences)
    late.in_flight = True
    sequences.log_is_new(proven=False)
    sequences.resolve(late)
    assert sequences.known_id == -1
    first = sent(sequences)
    assert not sequences.may_drain_new()
    sequences.resolve(first)
    assert sequences.known_id == 7


def test_batches_that_wait_for_a_log_proven_new_get_new_stamps() -> None:
    """None of it is in the new log. Under its stamp a later batch could go before an earlier one."""
    sequences = known(ids_of())
    waits, under_way, maybe = (sent(sequences) for _ in range(3))
    under_way.in_flight = True
    maybe.maybe_appended, maybe.arrives_until = True, 9.0
    sequences.log_is_new(proven=True)
    assert stamp_of(waits) == stamp_of(maybe) == (-1, -1, -1)
    assert [batch.maybe_before for batch in (waits, under_way, maybe)] == [False, False, True]
    assert not maybe.maybe_appended
    assert maybe.arrives_until == 0
    assert sequences.unresolved == [under_way]
    assert sequences.is_void(under_way)
    assert not sequences.may_drain_new()
    under_way.in_flight = False
    sequences.unstamp(under_way)
    for place, batch in enumerate([waits, under_way, maybe]):
        assert sequences.may_drain_new()
        send(sequences, batch)
        assert stamp_of(batch) == (7, 1, place)
        assert not sequences.may_drain_new()  # one at a time
        sequences.resolve(batch)
        sequences.known_id = -1


@pytest.mark.parametrize("proven", [False, True])
def test_a_batch_sent_by_name_may_be_in_the_new_log_already(proven: bool) -> None:
    sequences = known(ids_of())
    sequences.by_name = True
    batch = sent(sequences)
    sequences.log_is_new(proven=proven)
    assert not sequences.is_void(batch)
    assert batch.has_sequence()


def test_a_transaction_keeps_its_stamps() -> None:
    ids = ids_of()
    ids.transactional = True
    sequences = PartitionSequences(ids)
    sequences.joined = ids.transaction
    batch = sent(sequences)
    sequences.log_is_new(proven=True)
    assert stamp_of(batch) == (7, 0, 0)
    assert not sequences.is_void(batch)


def test_after_a_pause_one_batch_goes_alone() -> None:
    """Its broker may have forgotten the producer (``producer.id.expiration.ms``)."""
    sequences = known(ids_of())
    batch = make_batch(Loop(), records=1)
    sequences.stamp(batch, make_ids().known_for + 0.001, 0)
    assert not sequences.may_drain_new()
    batch.sent_at = 2.0
    sequences.resolve(batch)
    for _ in range(2):
        assert sequences.may_drain_new()
        sequences.stamp(make_batch(Loop(), records=1), 2.0 + make_ids().known_for, 0)
    assert sequences.may_drain_new()


NOW_MS = 1_700_000_000_000


def of_age(age_ms: int) -> ProducerBatch:
    batch = make_batch(Loop(), records=1)
    batch.max_timestamp = NOW_MS - age_ms
    return batch


def test_a_batch_of_old_records_waits_for_attempts_that_may_still_arrive() -> None:
    """Once the broker has forgotten the producer, it would append them again."""
    ids = make_ids(patience=60.0)
    ids.given(ProducerIdAndEpoch(7, 0))
    sequences = known(ids)
    first, old = of_age(0), of_age(REMEMBERED_MS + 1).max_timestamp
    sequences.stamp(first, 0.0, NOW_MS)
    first.arrives_until = 40.0
    sequences.resolve(first)
    assert sequences.may_drain_new(NOW_MS, 10.0, 10.0)
    assert not sequences.may_drain_new(old, 10.0, 39.0)
    assert sequences.may_drain_new(old, 10.0, 40.0)
    assert sequences.may_drain_new(old, -21.0, 39.0), "it would expire"


@pytest.mark.parametrize("end", ["unstamped", "given up"])
def test_so_it_does_for_those_of_batches_that_are_not_in_the_log(end: str) -> None:
    sequences = known(ids_of())
    first, old = of_age(0), of_age(REMEMBERED_MS + 1).max_timestamp
    sequences.stamp(first, 0.0, NOW_MS)
    first.arrives_until, first.maybe_appended = 40.0, True
    if end == "unstamped":
        sequences.unstamp(first)
    else:
        sequences.abandon(first)
    assert not sequences.may_drain_new(old, 10.0, 39.0)
    assert sequences.may_drain_new(old, 10.0, 40.0)


def test_those_set_aside_let_the_next_one_go_first_until_it_shows_where_they_are() -> None:
    sequences = known(ids_of())
    first, second, third = batches = of_age(0), of_age(0), of_age(0)
    for batch in batches:
        sequences.stamp(batch, 0.0, NOW_MS)
        batch.maybe_appended = True
    assert sequences.set_aside(first)
    assert [sequences.is_lowest(one) for one in batches] == [False, True, False]
    assert not sequences.proves_absence(second, 1.0), "the third may be in the log"
    assert sequences.set_aside(second)
    assert sequences.shown_by(third) == [first, second]
    assert sequences.proves_absence(third, 1.0)
    assert not sequences.set_aside(third), "nothing is behind it"
    assert sequences.put_back()
    assert not sequences.put_back()
    assert [sequences.is_lowest(one) for one in batches] == [True, False, False]


@pytest.mark.parametrize("why", ["by name", "a part"])
def test_nothing_is_set_aside_that_the_next_batch_cannot_show(why: str) -> None:
    sequences = known(ids_of())
    batches = of_age(0), of_age(0)
    for batch in batches:
        sequences.stamp(batch, 0.0, NOW_MS)
    sequences.by_name = why == "by name"
    batches[0].reshaped = why == "a part"
    assert not sequences.set_aside(batches[0])


@pytest.mark.parametrize("in_known_log", [False, True])
def test_by_name_a_batch_keeps_its_stamp_if_an_unknown_log_may_have_it(in_known_log: bool) -> None:
    sequences = known(ids_of())
    sequences.by_name = True
    batches = of_age(0), of_age(0)
    for batch in batches:
        sequences.stamp(batch, 0.0, NOW_MS)
        batch.maybe_appended = True
    sequences.unstamp(batches[0], in_known_log=in_known_log)
    assert batches[1].has_sequence() is not in_known_log


@pytest.mark.parametrize("by_name", [False, True])
def test_a_log_of_which_the_producer_did_not_know_may_lack_batches_before_others(by_name: bool) -> None:
    sequences = known(ids_of())
    before, after = of_age(0), of_age(0)
    sequences.by_name = by_name
    sequences.stamp(before, 0.0, NOW_MS)
    assert not sequences.may_be_left_out(before)
    sequences.log_is_new(proven=False)
    sequences.stamp(after, 0.0, NOW_MS)
    assert sequences.may_be_left_out(before) is by_name
    assert not sequences.may_be_left_out(after)


def test_behind_a_batch_of_old_records_nothing_goes_until_it_is_resolved() -> None:
    """Its broker may forget the producer right after it: ``producer.id.expiration.ms`` counts from timestamps."""
    sequences = known(ids_of())
    sequences.stamp(of_age(REMEMBERED_MS), 0.0, NOW_MS)
    assert sequences.may_drain_new()
    new = sequences.unresolved[0]
    old = of_age(REMEMBERED_MS + 1)
    assert sequences.may_drain_new(of_age(REMEMBERED_MS).max_timestamp)
    assert not sequences.may_drain_new(old.max_timestamp), "with it the broker would forget the one before it"
    sequences.resolve(new)
    assert sequences.may_drain_new(old.max_timestamp)
    sequences.stamp(old, 0.0, NOW_MS)
    assert not sequences.may_drain_new()
    sequences.resolve(old)
    for age in (REMEMBERED_MS + 1, 0):
        batch = of_age(age)
        sequences.stamp(batch, 0.0, NOW_MS)
        assert not sequences.may_drain_new(), "the first one behind it goes alone, too"
        sequences.resolve(batch)
    sequences.stamp(of_age(0), 0.0, NOW_MS)
    assert sequences.may_drain_new()


def test_a_part_of_a_batch_may_be_older_than_the_batch() -> None:
    sequences = known(ids_of())
    whole, old, new = of_age(0), of_age(REMEMBERED_MS + 1), of_age(0)
    sequences.stamp(whole, 0.0, NOW_MS)
    old.producer_id = new.producer_id = whole.producer_id
    sequences.split(whole, [old, new])
    sequences.sent_again(old, 0.0, NOW_MS)
    sequences.resolve(old)
    assert not sequences.may_drain_new(), "the broker may have forgotten the producer: the other part goes alone"
    sequences.sent_again(new, 0.0, NOW_MS)
    sequences.resolve(new)
    sequences.stamp(of_age(0), 0.0, NOW_MS)
    assert sequences.may_drain_new()


def test_behind_old_records_that_may_be_in_the_log_one_batch_goes_alone() -> None:
    sequences = known(ids_of())
    old = of_age(REMEMBERED_MS + 1)
    sequences.stamp(old, 0.0, NOW_MS)
    old.maybe_appended = True
    sequences.abandon(old)
    new = of_age(0)
    sequences.stamp(new, 0.0, NOW_MS)
    assert not sequences.may_drain_new()
    sequences.resolve(new)
    sequences.stamp(of_age(0), 0.0, NOW_MS)
    assert sequences.may_drain_new()


def test_a_batch_of_old_records_that_is_sent_again_goes_alone() -> None:
    sequences = known(ids_of())
    batch = of_age(0)
    sequences.stamp(batch, 0.0, NOW_MS)
    assert sequences.may_drain_new()
    sequences.sent_again(batch, 0.0, NOW_MS + REMEMBERED_MS + 1)
    assert not sequences.may_drain_new()


def test_old_records_go_as_others_where_the_log_gives_them_timestamps() -> None:
    sequences = known(ids_of())
    sequences.append_time = True
    for _ in range(2):
        sequences.stamp(of_age(10 * REMEMBERED_MS), 0.0, NOW_MS)
        assert sequences.may_drain_new()


def test_old_records_go_as_others_in_a_transaction() -> None:
    """A broker does not forget a producer whose transaction is open."""
    ids = ids_of()
    ids.transactional = True
    sequences = PartitionSequences(ids)
    sequences.joined = ids.transaction
    sequences.resolve(stamped(sequences))
    for _ in range(2):
        sequences.stamp(of_age(10 * REMEMBERED_MS), 0.0, NOW_MS)
        assert sequences.may_drain_new()


def test_while_a_batch_has_to_be_sent_again_no_new_one_goes_beside_it() -> None:
    """Its broker may have forgotten the producer meanwhile, and would accept the new one before it."""
    sequences = known(ids_of())
    batch = sent(sequences)
    sequences.interrupted()
    assert not sequences.may_drain_new()
    sequences.resolve(batch)
    stamped(sequences)
    assert sequences.may_drain_new()


def test_the_lowest_is_the_first_that_is_unresolved() -> None:
    sequences = known(ids_of())
    first, second, third = (stamped(sequences) for _ in range(3))
    assert [sequences.is_lowest(batch) for batch in (first, second, third)] == [True, False, False]
    sequences.resolve(second)
    assert sequences.is_lowest(first)
    sequences.resolve(first)
    assert sequences.is_lowest(third)
    sequences.resolve(third)
    assert not sequences.is_lowest(third)


def test_after_a_gap_the_rest_is_resolved_before_the_next_epoch_begins_at_zero() -> None:
    sequences = known(ids_of(7, 3))
    first, second, third = (stamped(sequences, 5) for _ in range(3))
    sequences.abandon(first)
    assert not sequences.may_drain_new()
    sequences.resolve(second)
    assert not sequences.may_drain_new()
    sequences.abandon(third)
    assert stamp_of(stamped(sequences, 2)) == (7, 4, 0)
    assert stamp_of(stamped(sequences, 2)) == (7, 4, 2)
    assert stamp_of(third) == (7, 3, 20)  # what was sent keeps its own


def test_a_batch_given_up_on_the_wire_lets_nothing_new_out_before_its_request_has_ended() -> None:
    sequences = known(ids_of())
    batch = stamped(sequences)
    sequences.break_off()
    assert not sequences.may_drain_new()
    assert sequences.is_lowest(batch)
    sequences.abandon(batch)
    assert stamp_of(stamped(sequences)) == (7, 1, 0)


def test_a_batch_that_lost_its_sequence_is_as_if_new() -> None:
    sequences = known(ids_of())
    first, second = stamped(sequences), stamped(sequences, 3)
    second.header = b"with its sequence"
    sequences.abandon(first)
    sequences.unstamp(second)
    assert stamp_of(second) == (-1, -1, -1)
    assert not second.has_sequence()
    assert second.header == b""
    assert sequences.unresolved == []
    sequences.stamp(second, 0.0, 0)
    assert stamp_of(second) == (7, 1, 0)
    assert stamp_of(stamped(sequences)) == (7, 1, 3)


@pytest.mark.parametrize("by_name", [False, True])
def test_batches_behind_one_that_lost_its_stamp_lose_their_own(by_name: bool) -> None:
    """A log that has forgotten the producer would accept it before that one."""
    sequences = known(ids_of())
    sequences.by_name = by_name
    first, waits, maybe, under_way, last = (sent(sequences) for _ in range(5))
    maybe.maybe_appended = under_way.in_flight = True
    sequences.unstamp(first)
    assert not any(batch.has_sequence() for batch in (first, waits, last))
    assert maybe.has_sequence() == by_name  # it may be in a log that is new: only the broker can tell
    assert sequences.unresolved == ([maybe, under_way] if by_name else [under_way])
    assert sequences.is_void(under_way)
    under_way.in_flight = False
    sequences.unstamp(under_way)
    if by_name:
        assert not sequences.is_void(maybe)
        sequences.resolve(maybe)
    send(sequences, first)
    assert stamp_of(first) == (7, 1, 0)
    assert not sequences.is_void(first)


class TestProvingAbsence:
    """The broker has answered to the lowest unresolved batch that it misses sequences before it."""

    def test_no_attempt_can_have_appended_it(self) -> None:
        sequences = known(ids_of(), window=1)
        assert sequences.proves_absence(sent(sequences), 0.0)

    @pytest.mark.parametrize("window", [1, 2, 5, 20])
    def test_a_broker_that_has_restarted_remembers_the_last_batch(self, window: int) -> None:
        sequences = known(ids_of(), window)
        first, *others = [sent(sequences) for _ in range(window)]
        first.maybe_appended = True
        assert sequences.proves_absence(first, 0.0)
        for batch in others:
            sequences.resolve(batch)
            assert not sequences.proves_absence(first, 0.0)

    @pytest.mark.parametrize("fate", ["maybe_appended", "in_flight"])
    def test_a_batch_that_may_be_behind_it_may_be_the_last(self, fate: str) -> None:
        sequences = known(ids_of(), 20)
        first, refused, other = (sent(sequences) for _ in range(3))
        first.maybe_appended = True
        assert sequences.proves_absence(first, 0.0), "those behind it were refused"
        setattr(other, fate, True)
        assert not sequences.proves_absence(first, 0.0)
        assert not refused.maybe_appended

    def test_behind_a_batch_that_is_absent_nothing_is_in_the_log(self) -> None:
        sequences = known(ids_of(), 20)
        before, batch, *others = (sent(sequences) for _ in range(8))
        for one in (batch, *others):
            one.maybe_appended = one.reshaped = True
            one.arrives_until = 9.0
        sequences.abandon(before)
        assert sequences.proves_absence(batch, 0.0)

    @pytest.mark.parametrize("ended", [0.0, 7.0, 9.0])
    @pytest.mark.parametrize("arrives", [0.0, 7.0, 9.0])
    def test_an_earlier_batch_that_may_still_arrive_lets_this_one_in(self, ended: float, arrives: float) -> None:
        sequences = known(ids_of())
        first, second = (sent(sequences) for _ in range(2))
        first.maybe_appended = second.maybe_appended = True
        first.arrives_until, second.arrives_until = ended, arrives
        sequences.abandon(first)
        for now in (6.9, 7.0, 8.9, 9.0):
            assert sequences.may_still_arrive(second, now) == (now < ended and now < arrives)
            assert sequences.proves_absence(second, now) != sequences.may_still_arrive(second, now)
        sequences.abandon(second)
        third = sent(sequences)  # the next epoch fences both off
        third.maybe_appended, third.arrives_until = True, 9.0
        assert sequences.proves_absence(third, 0.0)

    def test_the_parts_of_a_batch_come_before_what_is_missing_behind_it(self) -> None:
        """Else the last of them would count as behind it, and so as absent though the whole is in the log."""
        sequences = known(ids_of())
        whole = sent(sequences, 8)
        between, missing, behind = (sent(sequences) for _ in range(3))
        whole.maybe_appended = behind.maybe_appended = True
        sequences.abandon(missing)
        _ = whole.freeze()
        parts = split(whole, whole.records, 1)
        assert len(parts) == 8
        sequences.split(whole, parts)
        for part in parts:
            assert not sequences.proves_absence(part, 0.0)
            sequences.resolve(part)
        sequences.resolve(between)
        assert sequences.proves_absence(behind, 0.0)

    def test_a_part_of_a_batch_that_may_be_there_as_a_whole_is_not_recognised(self) -> None:
        sequences = known(ids_of())
        part = sent(sequences)
        part.maybe_appended = part.reshaped = True
        assert not sequences.proves_absence(part, 0.0)

    @pytest.mark.parametrize("maybe_appended", [False, True])
    def test_unless_something_before_it_is_missing(self, maybe_appended: bool) -> None:
        sequences = known(ids_of())
        before, part, behind = (sent(sequences) for _ in range(3))
        before.maybe_appended = maybe_appended
        part.maybe_appended = part.reshaped = True
        sequences.abandon(behind)
        assert not sequences.proves_absence(part, 0.0)
        sequences.abandon(before)
        assert sequences.proves_absence(part, 0.0) == (not maybe_appended)


def test_partitions_do_not_share_a_window() -> None:
    ids = ids_of()
    one, other = known(ids), known(ids)
    for _ in range(one.window):
        stamped(one)
    assert not one.may_drain_new()
    assert other.may_drain_new()


def test_a_gap_in_one_partition_leaves_the_others_alone() -> None:
    ids = ids_of()
    broken, whole = known(ids), known(ids)
    before = stamped(whole)
    broken.abandon(stamped(broken))
    assert stamp_of(stamped(broken)) == (7, 1, 0)
    assert stamp_of(stamped(whole)) == (7, 0, 11)
    assert stamp_of(before) == (7, 0, 10)


def test_after_the_last_epoch_comes_another_producer_id() -> None:
    ids = ids_of(7, MAX_EPOCH)
    sequences, other, untouched = known(ids), known(ids), PartitionSequences(ids)
    first, second = stamped(sequences), stamped(sequences)
    sequences.abandon(first)
    assert ids.current == (7, MAX_EPOCH)  # one is still unresolved
    sequences.resolve(second)
    assert ids.current is None
    assert not any(each.may_drain_new() for each in (sequences, other, untouched))
    ids.current = ProducerIdAndEpoch(8, 0)
    assert stamp_of(stamped(sequences)) == (8, 0, 0)
    assert not sequences.may_drain_new()  # nobody knows this id yet
    assert stamp_of(stamped(other)) == (7, MAX_EPOCH, 10)  # it has no gap, and so no need of another id
    assert stamp_of(stamped(untouched)) == (8, 0, 0)


def test_after_the_last_epoch_comes_another_producer_id_in_a_new_log_too() -> None:
    ids = ids_of(7, MAX_EPOCH)
    sequences = known(ids)
    waiting = stamped(sequences)
    sequences.log_is_new(proven=True)
    assert not waiting.has_sequence()
    assert ids.current is None
    ids.current = ProducerIdAndEpoch(8, 0)
    assert stamp_of(stamped(sequences)) == (8, 0, 0)


def test_a_gap_in_the_last_epoch_of_an_id_that_was_replaced_does_no_harm_to_the_new_one() -> None:
    ids = ids_of(7, MAX_EPOCH)
    one, other = known(ids), known(ids)
    one.abandon(stamped(one))
    ids.current = ProducerIdAndEpoch(8, 0)
    other.abandon(stamped(other))
    assert ids.current == (8, 0)
    assert stamp_of(stamped(other)) == (8, 0, 0)


def test_another_id_is_taken_up_only_with_a_gap() -> None:
    ids = ids_of()
    sequences = known(ids)
    ids.current = ProducerIdAndEpoch(8, 5)
    assert stamp_of(stamped(sequences)) == (7, 0, 10)
    sequences.abandon(sequences.unresolved[0])
    assert stamp_of(stamped(sequences)) == (8, 5, 0)


def test_children_of_a_split_batch_take_its_place_and_places_in_the_window() -> None:
    sequences = known(ids_of(), window=4)
    first, large, last = stamped(sequences, 1), stamped(sequences, 6), stamped(sequences, 2)
    children = [make_batch(Loop(), records=2) for _ in range(3)]
    for place, child in enumerate(children):
        child.producer_id, child.producer_epoch = large.producer_id, large.producer_epoch
        child.base_sequence = large.base_sequence + 2 * place
    sequences.split(large, children)
    assert sequences.unresolved == [first, *children, last]
    assert not sequences.may_drain_new()  # from the first on there are five now, and the broker remembers four
    sequences.resolve(first)
    assert not sequences.may_drain_new()
    sequences.resolve(children[0])
    assert sequences.is_lowest(children[1])
    assert stamp_of(stamped(sequences))[2] == last.base_sequence + 2
    sequences.abandon(children[1])
    assert sequences.broken


def parts_of_a_refused_batch(sequences: PartitionSequences, parts: int = 3) -> list[ProducerBatch]:
    """Of one record each, in its place."""
    refused = sent(sequences, parts)
    children = [make_batch(Loop()) for _ in range(parts)]
    for place, child in enumerate(children):
        child.producer_id, child.producer_epoch = refused.producer_id, refused.producer_epoch
        child.base_sequence = refused.base_sequence + place
    sequences.split(refused, children)
    return children


def test_parts_of_a_refused_batch_follow_those_under_way_as_far_as_the_window_goes() -> None:
    sequences = known(ids_of(), window=2)
    first, second, third = parts_of_a_refused_batch(sequences)
    assert [sequences.may_follow(part) for part in (second, third)] == [False, False]  # the first waits itself
    first.in_flight = True
    assert [sequences.may_follow(part) for part in (second, third)] == [True, False]
    second.in_flight = True
    assert not sequences.may_follow(third)  # the broker remembers two
    sequences.resolve(first)
    assert sequences.may_follow(third)


@pytest.mark.parametrize("why", ["sent before", "maybe appended", "another is sent again", "a gap", "old records"])
def test_a_part_that_a_broker_could_take_too_early_goes_alone(why: str) -> None:
    sequences = known(ids_of())
    first, second, _ = parts_of_a_refused_batch(sequences)
    first.in_flight = True
    assert sequences.may_follow(second)
    if why == "sent before":
        second.attempts = 1
    elif why == "maybe appended":
        second.maybe_appended = True
    elif why == "another is sent again":
        sequences.interrupted()
    elif why == "a gap":
        sequences.break_off()
    else:
        second.max_timestamp = -REMEMBERED_MS - 1
    assert not sequences.may_follow(second)
