from __future__ import annotations

from collections import OrderedDict

import pytest

from aioproducer.producer.batches.producer_batch import NO_LIMIT
from aioproducer.producer.scheduling.first_share import MOST_COUNTED, all_are_awaited, first_share, size_on_the_wire
from aioproducer.producer.scheduling.readiness import ReadyQueues
from tests.producer.simulations.standing_loop import Accumulation

FULL = 1000


class Awaiting(Accumulation):
    """An accumulator of whose records tasks await each."""

    def __init__(self, partitions: int) -> None:
        super().__init__(memory=10**7, batch_size=FULL)
        self.ready: ReadyQueues = OrderedDict.fromkeys(self.add_topic("t", partitions))

    def await_one(self, partition: int, size: int) -> None:
        self.append(partition=partition, value=bytes(size))
        batch = self.accumulator.topics["t"].queues[partition].open
        assert batch is not None
        batch.result.waiter(batch.count - 1)


def test_half_of_what_is_ready_goes_first() -> None:
    here = Awaiting(2)
    closed, due = here.ready
    for _ in range(3):
        here.await_one(0, 400)
        here.accumulator.close_batch(closed)
    here.await_one(1, 600)
    assert due.open is not None
    sizes = 3 * [size_on_the_wire(closed.batches[0])]
    assert first_share(here.ready, FULL) == sum(sizes) // 2, "a batch that lingers does not leave"
    due.due = True
    assert first_share(here.ready, FULL) == sum([*sizes, size_on_the_wire(due.open)]) // 2


@pytest.mark.parametrize("values", [[], [500], [300, 300]])
def test_what_fits_one_batch_is_not_divided(values: list[int]) -> None:
    here = Awaiting(2)
    for partition, size in enumerate(values):
        here.await_one(partition, size)
    for queue in here.ready:
        queue.due = True
    assert first_share(here.ready, FULL) == NO_LIMIT


def test_many_partitions_are_not_counted() -> None:
    here = Awaiting(MOST_COUNTED + 1)
    for queue in here.ready:
        here.await_one(queue.partition, 500)
        queue.due = True
    assert first_share(here.ready, FULL) == NO_LIMIT
    here.ready.popitem()
    assert first_share(here.ready, FULL) < NO_LIMIT


def test_many_batches_are_not_counted() -> None:
    here = Awaiting(1)
    (queue,) = here.ready
    for number in range(MOST_COUNTED + 1):
        here.await_one(0, 500)
        here.accumulator.close_batch(queue)
        assert (first_share(here.ready, FULL) == NO_LIMIT) == (number == 0 or number == MOST_COUNTED)


def test_one_batch_says_whether_all_are_awaited() -> None:
    here = Awaiting(2)
    queue = next(iter(here.ready))
    assert not all_are_awaited(here.ready), "an empty partition"
    for _ in range(2):
        here.append(partition=0)
    assert queue.open is not None
    queue.open.result.waiter(0)
    assert not all_are_awaited(here.ready)
    queue.open.result.waiter(1)
    assert all_are_awaited(here.ready)
    here.accumulator.close_batch(queue)
    here.append(partition=0)
    assert all_are_awaited(here.ready), "the closed batch is the next to leave"


def test_what_nobody_awaits_is_not_divided() -> None:
    here = Awaiting(1)
    (queue,) = here.ready
    for _ in range(3):
        here.append(partition=0, value=bytes(500))
        here.accumulator.close_batch(queue)
    assert first_share(here.ready, FULL) == NO_LIMIT
