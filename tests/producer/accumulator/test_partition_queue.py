from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.idempotence.sequences import PartitionSequences
from tests.producer.simulations.standing_loop import Loop, make_batch, make_ids


def drained(order: int, sequence: int = -1) -> ProducerBatch:
    batch = make_batch(Loop())
    batch.drain_order = order
    batch.base_sequence = sequence
    return batch


def test_is_empty_at_first() -> None:
    sequences = PartitionSequences(make_ids())
    queue = PartitionQueue("t", 3, sequences)
    assert (queue.topic, queue.partition, queue.sequences) == ("t", 3, sequences)
    assert (queue.open, list(queue.batches), queue.leader, queue.leader_epoch) == (None, [], -1, -1)
    assert (queue.due, queue.deadline, queue.ready, queue.in_flight) == (False, math.inf, False, 0)


def test_depth_counts_the_open_batch() -> None:
    queue = PartitionQueue("t", 3, None)
    assert queue.depth() == 0
    queue.batches.append(make_batch(Loop()))
    queue.open = make_batch(Loop())
    assert queue.depth() == 2
    assert repr(queue) == "<PartitionQueue t-3 depth=2 leader=-1>"


def test_a_grown_batch_counts_as_several_batches() -> None:
    queue = PartitionQueue("t", 3, None)
    assert queue.load() == 0
    queue.open = make_batch(Loop(), records=1)
    assert queue.load() == 1
    size = queue.open.size()
    queue.open = grown = make_batch(Loop(), records=10)
    grown.ready_size = 3 * size
    assert queue.load() == grown.size() // (3 * size) == 3
    for _ in range(2):
        queue.batches.append(grown)
    assert queue.load() == 9


@given(orders=st.permutations(range(6)), new=st.integers(0, 3))
def test_retries_come_first_in_the_order_they_were_first_drained(orders: list[int], new: int) -> None:
    queue = PartitionQueue("t", 0, None)
    fresh = [make_batch(Loop()) for _ in range(new)]
    queue.batches.extend(fresh)
    for order in orders:
        queue.insert_retry(drained(order))
    assert [batch.drain_order for batch in queue.batches] == [*range(6), *[-1] * new]
    assert [batch for batch in queue.batches if batch.drain_order < 0] == fresh


@given(orders=st.lists(st.integers(0, 9), unique=True).map(sorted))
def test_a_part_of_a_batch_that_was_never_drained_comes_behind_retries_and_before_the_others(orders: list[int]) -> None:
    queue = PartitionQueue("t", 0, None)
    behind, part = make_batch(Loop()), make_batch(Loop())
    queue.batches.extend([*map(drained, orders), behind])
    queue.insert_retry(part)
    assert list(queue.batches)[-2:] == [part, behind]
    assert [batch.drain_order for batch in queue.batches] == [*orders, -1, -1]


@given(batches=st.permutations([(order, order % 2 == 0) for order in range(6)]))
def test_batches_that_keep_their_sequence_come_before_those_that_wait_for_a_new_one(
    batches: list[tuple[int, bool]],
) -> None:
    """A new sequence is given only when all older ones are resolved, so nothing may stand in the way of those."""
    queue = PartitionQueue("t", 0, None)
    queue.batches.append(make_batch(Loop()))
    for order, has_sequence in batches:
        queue.insert_retry(drained(order, sequence=order if has_sequence else -1))
    assert [batch.drain_order for batch in queue.batches] == [0, 2, 4, 1, 3, 5, -1]
