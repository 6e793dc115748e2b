from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import LEAST_WHOLE, NO_LIMIT, ProducerBatch
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.scheduling.drain import (
    MOST_BATCHES,
    MOST_CLOSED,
    MOST_UNANSWERED,
    MOST_WAITING,
    Drained,
    drain,
)
from aioproducer.producer.scheduling.readiness import ReadyQueues
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from tests.producer.simulations.standing_loop import Accumulation, make_ids, make_line, sequences_of


class Draining(Accumulation):
    """An accumulator whose partitions all stand in one ready set, as if one node led them."""

    def __init__(self, partitions: int, **more: Any) -> None:
        super().__init__(memory=10**7, max_request_size=10**6, **more)
        self.ids = make_ids()
        self.ids.current = ProducerIdAndEpoch(1, 0)
        self.queues = self.add_topic("t", partitions, sequences=lambda: PartitionSequences(self.ids))
        self.ready: ReadyQueues = OrderedDict()
        self.line = make_line()
        self.stopped = False

    def fill(self, partition: int, batches: int = 1, size: int = 900) -> None:
        for _ in range(batches):
            self.append(partition=partition, value=bytes(size))
            self.accumulator.close_batch(self.queues[partition])
        self.make_ready(partition)

    def make_ready(self, partition: int) -> None:
        if not self.queues[partition].ready:
            self.queues[partition].ready = True
            self.ready[self.queues[partition]] = None

    def drain(
        self,
        max_request_size: int = 10**6,
        *,
        now: float = 0.0,
        keep_order: bool = False,
        thread_bytes: int = NO_LIMIT,
        timeout: float = math.inf,
        cut: Callable[[PartitionQueue, ProducerBatch], object] = lambda queue, batch: None,
        largest: int = NO_LIMIT,
        least_whole: int = LEAST_WHOLE,
    ) -> list[Drained]:
        """What the call has taken; ``stopped`` is whether it has left partitions for the next one."""
        found = drain(
            self.ready,
            self.accumulator,
            now,
            max_request_size,
            keep_order=keep_order,
            thread_bytes=thread_bytes,
            timeout=timeout,
            line=self.line,
            cut=cut,
            largest=largest,
            least_whole=least_whole,
        )
        self.stopped = found.stopped
        return found.taken

    def consistent(self) -> bool:
        return all(queue.ready == (queue in self.ready) for queue in self.queues)


def partitions(drained: list[Drained]) -> list[int]:
    return [one.queue.partition for one in drained]


def test_takes_the_head_of_every_ready_partition_once() -> None:
    here = Draining(4)
    for partition in (2, 0, 3):
        here.fill(partition, batches=3)
    heads = [here.queues[partition].batches[0] for partition in (2, 0, 3)]
    drained = here.drain()
    assert partitions(drained) == [2, 0, 3]
    assert [one.batch for one in drained] == heads
    assert [queue.depth() for queue in here.queues] == [2, 0, 2, 2]
    assert partitions(here.drain()) == [2, 0, 3]
    assert partitions(here.drain()) == [2, 0, 3]
    assert here.drain() == []
    assert here.consistent()


def test_nothing_is_ready() -> None:
    here = Draining(2)
    assert here.drain() == []
    here.make_ready(0)
    assert here.drain() == []
    assert not here.queues[0].ready


def test_many_with_nothing_to_send_are_looked_at_in_several_calls() -> None:
    here = Draining(MOST_WAITING + 2)
    for partition in range(MOST_WAITING + 1):
        here.make_ready(partition)
    here.fill(MOST_WAITING + 1)
    assert here.drain() == []
    assert here.stopped
    assert len(here.ready) == 2
    assert partitions(here.drain()) == [MOST_WAITING + 1]
    assert not here.stopped
    assert here.consistent()


def test_an_open_batch_that_is_due_is_closed_and_taken() -> None:
    here = Draining(1)
    here.append()
    here.make_ready(0)
    assert here.drain() == []
    here.queues[0].due = True
    here.make_ready(0)
    (one,) = here.drain()
    queue, batch = one.queue, one.batch
    assert batch is here.opened[0]
    assert batch.records
    assert queue.open is None
    assert not queue.due
    assert not queue.ready


def test_a_partition_with_a_due_batch_behind_stays_ready() -> None:
    here = Draining(1)
    here.fill(0)
    here.append()
    here.queues[0].due = True
    assert len(here.drain()) == 1
    assert here.queues[0].ready
    assert len(here.drain()) == 1
    here.fill(0)
    here.append()  # this one lingers
    assert len(here.drain()) == 1
    assert not here.queues[0].ready
    assert here.consistent()


def test_a_request_is_no_larger_than_it_may_be() -> None:
    here = Draining(5)
    for partition in range(5):
        here.fill(partition, size=800)
    drained = here.drain(2000)
    assert partitions(drained) == [0, 1]
    assert sum(one.batch.size() + 61 for one in drained) <= 2000
    assert partitions(here.drain(2000)) == [2, 3]
    assert partitions(here.drain(2000)) == [4]
    assert here.consistent()


def test_a_request_takes_no_more_batches_than_the_loop_has_time_for() -> None:
    here = Draining(MOST_BATCHES + 50)
    for partition in range(len(here.queues)):
        here.fill(partition, size=10)
    assert partitions(here.drain()) == list(range(MOST_BATCHES))
    assert partitions(here.drain()) == list(range(MOST_BATCHES, MOST_BATCHES + 50))
    assert here.consistent()


def test_a_request_may_be_filled_to_the_last_byte() -> None:
    here = Draining(2)
    for partition in range(2):
        here.fill(partition, size=800)
    size = 2 * (here.queues[0].batches[0].size() + 61)
    assert partitions(here.drain(size - 1)) == [0]
    here.fill(0, size=800)
    assert partitions(here.drain(size)) == [1, 0]


def test_a_batch_larger_than_a_request_goes_alone() -> None:
    here = Draining(3)
    here.fill(0, size=100)
    here.fill(1, size=3000)
    here.fill(2, size=100)
    assert [partitions(here.drain(1000)) for _ in range(4)] == [[0], [1], [2], []]


def test_no_partition_starves_another() -> None:
    """Each request has room for two of five batches, and every partition always has more."""
    here = Draining(5)
    taken: Counter[int] = Counter()
    for _ in range(50):
        for partition in range(5):
            if here.queues[partition].depth() < 3:
                here.fill(partition, size=800)
        taken.update(partitions(here.drain(2000)))
        assert here.consistent()
    assert set(taken.values()) == {20}


def test_a_retry_in_its_back_off_leaves_the_ready_set_and_no_later_batch_goes_first() -> None:
    here = Draining(2)
    here.fill(0, batches=2)
    here.fill(1)
    here.queues[0].batches[0].drain_order = 0
    here.queues[0].batches[0].retry_at = 5.0
    assert partitions(here.drain(now=4.0)) == [1]
    assert here.consistent()
    here.make_ready(0)
    first = here.queues[0].batches[0]
    assert [one.batch for one in here.drain(now=5.0)] == [first]


def test_a_batch_that_is_about_to_expire_is_not_sent_nor_is_one_behind_it() -> None:
    here = Draining(3)
    here.fill(0)
    here.append(partition=1)
    here.queues[1].due = True
    here.make_ready(1)
    here.loop.now += 5
    here.fill(0)
    here.fill(2)
    late = here.queues[0].batches[0].created + 10
    assert partitions(here.drain(now=late, timeout=10)) == [2]
    assert here.consistent()
    assert len(here.queues[0].batches) == 2
    assert here.queues[1].open is not None
    here.make_ready(0)
    assert partitions(here.drain(now=late - 0.001, timeout=10)) == [0]


def test_a_new_leader_ends_the_back_off() -> None:
    here = Draining(1)
    here.fill(0)
    batch = here.queues[0].batches[0]
    batch.drain_order, batch.retry_at, batch.leader_epoch = 0, 5.0, 3
    here.queues[0].leader_epoch = 4
    assert partitions(here.drain(now=0.0)) == [0]


def test_keeping_order_one_batch_is_under_way() -> None:
    here = Draining(2)
    here.fill(0, batches=2)
    here.fill(1)
    here.queues[0].in_flight = 1
    assert partitions(here.drain(keep_order=True)) == [1]
    here.queues[0].in_flight = 0
    here.make_ready(0)
    assert partitions(here.drain(keep_order=True)) == [0]


@pytest.mark.parametrize("window", [1, 2, 5, 20])
def test_at_most_a_window_of_batches_is_unresolved(window: int) -> None:
    here = Draining(1)
    queue = here.queues[0]
    sequences_of(queue).window = window
    sequences_of(queue).known_id = 1
    here.fill(0, batches=window + 3)
    sent = []
    while drained := here.drain():
        sent.append(drained[0].batch)
        sequences_of(queue).stamp(sent[-1], 0.0, 0)
    assert len(sent) == window
    sequences_of(queue).resolve(sent[0])
    here.make_ready(0)
    assert len(here.drain()) == 1


@given(
    depths=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 1500)), min_size=1, max_size=6),
    limit=st.integers(100, 4000),
)
def test_everything_goes_in_the_end_and_each_partition_in_order(
    depths: list[tuple[int, bool, int]], limit: int
) -> None:
    here = Draining(len(depths))
    for partition, (batches, is_open, size) in enumerate(depths):
        here.fill(partition, batches, size)
        if is_open:
            here.append(partition=partition)
            here.queues[partition].due = True
    expected = {
        queue.partition: [*queue.batches, *([queue.open] if queue.open is not None else [])] for queue in here.queues
    }
    taken: dict[int, list[Any]] = {queue.partition: [] for queue in here.queues}
    while drained := here.drain(limit):
        assert len(set(partitions(drained))) == len(drained)
        assert len(drained) == 1 or sum(one.batch.size() + 61 for one in drained) <= limit
        for one in drained:
            taken[one.queue.partition].append(one.batch)
        assert here.consistent()
    assert taken == expected
    assert not here.ready


class Compressing(Draining):
    """What is closed has yet to be compressed."""

    def batch_full(self, queue: PartitionQueue) -> None:
        queue.batches[-1].compressing = True


def test_an_open_batch_for_a_thread_is_closed_and_stays() -> None:
    here = Compressing(1)
    here.append(value=bytes(900))
    here.queues[0].due = True
    here.make_ready(0)
    (batch,) = here.opened
    assert here.drain(thread_bytes=900) == []
    assert list(here.queues[0].batches) == [batch]
    assert not here.queues[0].ready
    batch.compressing = False
    here.make_ready(0)
    (one,) = here.drain(thread_bytes=900)
    assert (one.queue, one.batch) == (here.queues[0], batch)


def test_few_batches_are_closed_for_threads_at_a_time() -> None:
    here = Compressing(MOST_CLOSED + 2)
    for queue in here.queues:
        here.append(partition=queue.partition, value=bytes(900))
        queue.due = True
        here.make_ready(queue.partition)
    assert here.drain(thread_bytes=900) == []
    assert [len(queue.batches) for queue in here.queues] == [*[1] * MOST_CLOSED, 0, 0]
    assert [queue.partition for queue in here.ready] == [MOST_CLOSED, MOST_CLOSED + 1]
    assert here.consistent()
    here.opened[0].compressing = False  # which wakes the Sender
    here.make_ready(0)
    assert partitions(here.drain(thread_bytes=900)) == [0]
    assert not here.ready


def test_compression_per_request_is_bounded() -> None:
    here = Draining(6)
    for partition in range(6):
        here.fill(partition)
    sizes = [queue.batches[0].size() for queue in here.queues]
    assert partitions(here.drain(thread_bytes=2 * sizes[0])) == [0, 1, 2]
    here.queues[3].batches[0].body = b"compressed already"
    assert partitions(here.drain(thread_bytes=2 * sizes[0])) == [3, 4, 5]


class OnASlowLine(Draining):
    """Retries of one partition need not keep their order here."""

    def __init__(self, partitions: int) -> None:
        super().__init__(partitions)
        for queue in self.queues:
            queue.sequences = None

    def sent_in_vain(self, drained: list[Drained], now: float = 0.0) -> None:
        """The batches were sealed and sent, and not answered in time. They are ready again."""
        for one in drained:
            one.batch.body = one.batch.records
        self.line.timed_out(sum(len(one.batch.body) + BATCH_OVERHEAD for one in drained), now - 30.0, now)
        for one in drained:
            one.queue.insert_retry(one.batch)
            self.make_ready(one.queue.partition)


def test_a_large_batch_does_not_go_while_smaller_ones_may_be_behind_those_that_wait() -> None:
    here = OnASlowLine(MOST_WAITING + 2)
    here.fill(0, size=9000)
    here.sent_in_vain(here.drain())
    for partition in range(1, MOST_WAITING + 1):
        here.make_ready(partition)
    here.fill(MOST_WAITING + 1, size=100)
    assert here.drain(now=2.0) == []
    assert here.consistent()
    assert partitions(here.drain(now=2.0)) == [MOST_WAITING + 1]
    assert partitions(here.drain(now=2.0)) == [0]


def test_after_a_time_out_the_smaller_batches_go_first_and_the_large_one_alone() -> None:
    here = OnASlowLine(4)
    here.fill(0, size=9000)
    for partition in (1, 2, 3):
        here.fill(partition, size=100 * partition)
    here.sent_in_vain(here.drain())
    assert partitions(here.drain()) == [1, 2, 3]
    assert here.drain() == []  # what was lost with the request may still be in its back-off
    assert here.consistent()
    assert partitions(here.drain(now=1.0)) == [0]
    assert here.consistent()


def test_of_several_large_batches_the_smallest_goes_first_each_alone() -> None:
    here = OnASlowLine(4)
    for partition, size in enumerate((9000, 7000, 8000)):
        here.fill(partition, size=size)
    here.line.timed_out(2000, -31.0, -1.0)
    here.fill(3, size=100)
    taken = []
    while drained := here.drain():
        taken.append(partitions(drained))
    assert taken == [[3], [1], [2], [0]]
    assert here.consistent()


def test_a_large_batch_has_its_turn_though_there_is_always_a_smaller_one() -> None:
    here = OnASlowLine(2)
    here.line.timed_out(2000, -31.0, -1.0)
    here.fill(0, batches=2, size=9000)
    taken = []
    for now in range(0, 90, 10):
        here.fill(1, size=100)
        taken.append(partitions(here.drain(now=float(now))))
        if taken[-1] == [0]:
            assert partitions(here.drain(now=float(now))) == [1]
    assert taken == [[1], [1], [1], [0], [1], [1], [0], [1], [1]]


def test_requests_that_time_out_are_halved_until_each_batch_is_alone() -> None:
    here = OnASlowLine(8)
    for partition in range(8):
        here.fill(partition, size=1000)
    requests = [here.drain()]
    assert [len(request) for request in requests] == [8]
    for now, number in enumerate((4, 2, 1, 1), 1):
        for request in requests:
            here.sent_in_vain(request, now=30.0 * now)
        requests = []
        while drained := here.drain(now=30.0 * now + 1):
            requests.append(drained)
        assert {len(request) for request in requests} == {number}
        assert sum(map(len, requests)) == 8


def joining(partitions: int, **more: Any) -> Draining:
    """Batches are of 1,000 bytes, and grow to 4,000."""
    return Draining(partitions, batch_max_size=4000, **more)


def test_batches_that_wait_are_joined_once_the_line_is_known() -> None:
    here = joining(2)
    here.line_takes = 0
    here.fill(0, batches=9, size=800)
    here.fill(1, batches=2, size=800)
    free = here.pool.available
    first = here.queues[0].batches[0]
    assert [one.batch.count for one in here.drain()] == [1, 1]
    here.line_takes = 3000
    assert [one.batch.count for one in here.drain()] == [3, 1]
    here.line_takes = 10_000
    (one,) = here.drain()
    assert one.batch.count == 4
    assert here.pool.available > free, "fewer batches take less memory"
    assert [len(parts) for parts, _ in here.joined] == [3, 4]
    assert first not in here.joined[0][0]
    assert [one.batch.count for one in here.drain()] == [1]
    assert here.consistent()


def test_batches_are_joined_only_to_the_size_of_the_request() -> None:
    here = joining(1)
    here.line_takes = 0
    here.fill(0, batches=4, size=800)
    here.line_takes = 10_000
    assert [one.batch.count for one in here.drain(2000)] == [2]
    assert [one.batch.count for one in here.drain()] == [2]


def test_batches_without_sequences_are_not_joined() -> None:
    """The parts of a batch that the broker refuses go behind those that it has accepted meanwhile."""
    here = joining(1)
    here.queues[0].sequences = None
    here.fill(0, batches=4, size=800)
    assert [one.batch.count for one in here.drain()] == [1]
    assert here.joined == []


def test_a_batch_that_was_sent_is_not_joined() -> None:
    here = joining(1)
    here.fill(0, batches=2)
    queue = here.queues[0]
    queue.sequences = None
    queue.batches[0].drain_order = 1
    assert [one.batch.count for one in here.drain()] == [1]
    assert here.joined == []


def test_what_is_joined_is_not_so_large_that_a_thread_has_to_compress_it() -> None:
    here = joining(1, thread_bytes=2500)
    here.fill(0, batches=5, size=900)
    assert [one.batch.count for one in here.drain(thread_bytes=2500)] == [2]
    assert [one.batch.count for one in here.drain(thread_bytes=2500)] == [2]
    assert [one.batch.count for one in here.drain(thread_bytes=2500)] == [1]


@pytest.mark.parametrize(
    ("grown", "taken"), [(0, [0, 1, 2, 3, 4]), (100, [0]), (5000, [0]), (7000, [0, 1]), (10**6, [0, 1, 2, 3, 4])]
)
def test_large_batches_go_together_as_far_as_the_line_has_carried_so_much(grown: int, taken: list[int]) -> None:
    here = joining(5)
    here.line.grown = grown
    for partition in range(5):
        here.fill(partition, size=3000)
    assert partitions(here.drain()) == taken
    assert here.consistent()


def test_small_batches_go_together_whatever_the_line_has_carried() -> None:
    here = joining(5)
    here.line.grown = 100
    for partition in range(5):
        here.fill(partition, size=500)
    assert partitions(here.drain()) == [0, 1, 2, 3, 4]


def test_a_head_that_its_topic_would_refuse_waits_while_it_is_cut() -> None:
    here = Draining(2)
    here.fill(0, batches=2, size=900)
    here.append(partition=1, value=bytes(300))
    here.append(partition=1, value=bytes(600))  # open
    here.queues[1].due = True
    here.make_ready(1)
    here.accumulator.limits.refused("t", 900, 0.0)
    cut: list[ProducerBatch] = []

    def begin(queue: PartitionQueue, batch: ProducerBatch) -> None:
        assert queue.batches[0] is batch
        batch.compressing = True
        cut.append(batch)

    assert partitions(here.drain(cut=begin)) == [0]  # a single record cannot be cut
    assert [batch.count for batch in cut] == [2]
    assert here.queues[1].open is None
    assert not here.queues[1].ready
    assert here.consistent()


def test_what_was_sent_before_is_not_cut() -> None:
    here = Draining(1)
    here.append(value=bytes(300))
    here.append(value=bytes(600))
    here.accumulator.close_batch(here.queues[0])
    here.make_ready(0)
    here.accumulator.limits.refused("t", 900, 0.0)
    (head,) = here.queues[0].batches
    assert here.accumulator.must_be_cut(head)
    head.attempts = 1
    assert not here.accumulator.must_be_cut(head)
    assert [one.batch for one in here.drain(cut=lambda queue, batch: pytest.fail("it is cut"))] == [head]


LARGEST = 1500


def on_a_line_that_has_become_slow(partitions: int) -> Draining:
    """Batches are of 1,000 bytes, and have grown to 4,000; no more than LARGEST are answered now."""
    here = joining(partitions)
    for partition in range(partitions):
        for _ in range(10):
            here.append(partition=partition, value=bytes(300))
    return here


@pytest.mark.parametrize(("takes", "fitting"), [(300, 1000), (1300, 1300)])
def test_what_is_cut_for_its_line_becomes_no_smaller_than_it_need_be(takes: int, fitting: int) -> None:
    here = on_a_line_that_has_become_slow(1)
    here.line_takes = takes
    here.accumulator.close_batch(here.queues[0])
    assert here.accumulator.fitting(here.queues[0], here.queues[0].batches[0]) == fitting


def test_what_was_never_sent_is_cut_to_what_its_line_takes_one_partition_a_call() -> None:
    here = on_a_line_that_has_become_slow(3)
    here.accumulator.close_batch(here.queues[0])
    here.queues[1].due = True  # open
    here.fill(2, size=5000)  # a single record behind ten
    for partition in range(2):
        here.make_ready(partition)
    cut: list[ProducerBatch] = []

    def begin(queue: PartitionQueue, batch: ProducerBatch) -> None:
        assert queue.batches[0] is batch
        batch.compressing = True
        cut.append(batch)

    assert [here.drain(cut=begin, largest=LARGEST) for _ in range(4)] == [[]] * 4
    assert [batch.count for batch in cut] == [10, 10, 10]
    assert here.queues[1].open is None
    assert here.consistent()


def test_smaller_batches_go_while_one_is_cut() -> None:
    here = on_a_line_that_has_become_slow(1)
    here.accumulator.close_batch(here.queues[0])
    here.make_ready(0)
    other = here.add_topic("u", 1)[0]
    here.append(topic="u", value=bytes(300))
    other.due = other.ready = True
    here.ready[other] = None
    cut: list[ProducerBatch] = []
    assert [one.queue for one in here.drain(cut=lambda queue, batch: cut.append(batch), largest=LARGEST)] == [other]
    assert cut == [here.queues[0].batches[0]]
    assert here.consistent()


@pytest.mark.parametrize(
    ("attempts", "unanswered", "reshaped", "is_cut"),
    [(1, 0, False, False), (1, 1, False, True), (3, 0, True, True)],
)
def test_what_was_sent_is_cut_if_it_was_not_answered(
    attempts: int, unanswered: int, reshaped: bool, is_cut: bool
) -> None:
    """And so is a part of it, before it is sent."""
    here = on_a_line_that_has_become_slow(1)
    here.accumulator.close_batch(here.queues[0])
    here.make_ready(0)
    (head,) = here.queues[0].batches
    head.attempts, head.unanswered, head.reshaped, head.base_sequence = attempts, unanswered, reshaped, 7
    cut: list[ProducerBatch] = []

    def begin(queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.asked_about = True
        cut.append(batch)

    assert [one.batch for one in here.drain(cut=begin, largest=LARGEST)] == ([] if is_cut else [head])
    assert cut == ([head] if is_cut else [])
    assert here.consistent()


def with_a_small_batch() -> tuple[Draining, ProducerBatch]:
    """A closed batch of two records, ready to leave."""
    here = Draining(1)
    for _ in range(2):
        here.append(value=bytes(300))
    here.accumulator.close_batch(here.queues[0])
    here.make_ready(0)
    (head,) = here.queues[0].batches
    return here, head


@pytest.mark.parametrize(("unanswered", "is_cut"), [(MOST_UNANSWERED - 1, False), (MOST_UNANSWERED, True)])
def test_a_small_batch_is_cut_if_it_was_not_answered_again_and_again(unanswered: int, is_cut: bool) -> None:
    here, head = with_a_small_batch()
    head.attempts = head.unanswered = unanswered
    cut: list[ProducerBatch] = []
    taken = here.drain(cut=lambda queue, batch: cut.append(batch), largest=100)
    assert (cut, [one.batch for one in taken]) == (([head], []) if is_cut else ([], [head]))


def test_a_small_batch_that_would_end_its_connection_is_cut_at_once() -> None:
    here, head = with_a_small_batch()
    cut: list[ProducerBatch] = []
    assert here.drain(cut=lambda queue, batch: cut.append(batch), largest=100, least_whole=0) == []
    assert cut == [head]


def test_a_single_record_is_not_cut() -> None:
    here = Draining(1)
    here.fill(0, size=5000)
    (one,) = here.drain(cut=lambda queue, batch: pytest.fail("it is cut"), largest=LARGEST)
    assert one.batch.count == 1
