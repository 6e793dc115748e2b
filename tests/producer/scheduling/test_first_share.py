from __future__ import annotations

from collections import OrderedDict

import pytest

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import NO_LIMIT
from aioproducer.producer.scheduling.first_share import (
    MANY,
    MOST_COUNTED,
    all_are_awaited,
    first_share,
    is_enough,
)
from aioproducer.producer.scheduling.readiness import ReadyQueues
from tests.producer.simulations.standing_loop import Accumulation


class Awaiting(Accumulation):
    """An accumulator of whose records tasks await each."""

    def __init__(self, partitions: int) -> None:
        super().__init__(memory=10**7, batch_size=10_000)
        self.queues: list[PartitionQueue] = self.add_topic("t", partitions)
        self.ready: ReadyQueues = OrderedDict.fromkeys(self.queues)

    def await_some(self, partition: int, records: int) -> None:
        for _ in range(records):
            self.append(partition=partition)
            batch = self.queues[partition].open
            assert batch is not None
            batch.result.waiter(batch.count - 1)

    def close(self, partition: int) -> None:
        self.accumulator.close_batch(self.queues[partition])


def test_half_of_what_is_ready_goes_first() -> None:
    here = Awaiting(2)
    closed, due = here.queues
    for _ in range(3):
        here.await_some(0, MANY // 2)
        here.close(0)
    here.await_some(1, MANY)
    assert due.open is not None
    sizes = 3 * [closed.batches[0].size_on_the_wire()]
    assert first_share(here.ready) == sum(sizes) // 2, "a batch that lingers does not leave"
    due.due = True
    assert first_share(here.ready) == sum([*sizes, due.open.size_on_the_wire()]) // 2


@pytest.mark.parametrize(("records", "divided"), [(0, False), (MANY // 2 - 1, False), (MANY // 2, True)])
def test_few_records_are_not_divided(records: int, divided: bool) -> None:
    here = Awaiting(2)
    for partition in range(2):
        here.await_some(partition, records)
        here.queues[partition].due = True
    assert (first_share(here.ready) < NO_LIMIT) == divided


def test_one_batch_is_not_divided() -> None:
    here = Awaiting(1)
    here.await_some(0, MANY)
    here.queues[0].due = True
    assert first_share(here.ready) == NO_LIMIT
    here.close(0)
    here.await_some(0, 1)
    here.queues[0].due = True
    assert first_share(here.ready) < NO_LIMIT


def test_many_partitions_are_not_counted() -> None:
    here = Awaiting(MOST_COUNTED + 1)
    for queue in here.queues:
        here.await_some(queue.partition, 1)
        queue.due = True
    assert first_share(here.ready) == NO_LIMIT
    here.ready.popitem()
    assert first_share(here.ready) < NO_LIMIT


def test_many_batches_are_not_counted() -> None:
    here = Awaiting(1)
    here.await_some(0, MANY)
    here.close(0)
    for number in range(1, MOST_COUNTED + 1):
        here.await_some(0, 1)
        here.close(0)
        assert (first_share(here.ready) == NO_LIMIT) == (number == MOST_COUNTED)


def test_one_batch_says_whether_all_are_awaited() -> None:
    here = Awaiting(2)
    queue = here.queues[0]
    assert not all_are_awaited(here.ready), "an empty partition"
    for _ in range(2):
        here.append(partition=0)
    assert queue.open is not None
    queue.open.result.waiter(0)
    assert not all_are_awaited(here.ready)
    queue.open.result.waiter(1)
    assert all_are_awaited(here.ready)
    here.close(0)
    here.append(partition=0)
    assert all_are_awaited(here.ready), "the closed batch is the next to leave"


def test_what_nobody_awaits_is_not_divided() -> None:
    here = Awaiting(1)
    for _ in range(2 * MANY):
        here.append(partition=0)
        here.close(0)
    assert first_share(here.ready) == NO_LIMIT


def test_half_of_many_is_enough() -> None:
    here = Awaiting(1)
    here.await_some(0, MANY // 2 - 1)
    batch = here.queues[0].open
    assert batch is not None
    assert not is_enough(batch)
    here.append(partition=0)
    assert not is_enough(batch), "one is not awaited"
    batch.result.waiter(batch.count - 1)
    assert is_enough(batch)
