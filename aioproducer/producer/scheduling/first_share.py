"""Divides what tasks await between two requests, where a node has none to answer.

Tasks that await their records send the next ones when these are answered. If one request had the records of all, the
producer would wait while the broker works, and the broker while the tasks run. With two requests one of the two works
while the other does, and both go on like that: the records of a request lead to the next request.
"""

from __future__ import annotations

from mypy_extensions import i64

from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.scheduling.readiness import ReadyQueues
from aioproducer.records.batch_layout import BATCH_OVERHEAD

MOST_COUNTED = 200
"""The most partitions, and batches, that are looked at. Where there are more, they are several requests anyway."""


def first_share(ready: ReadyQueues, full: i64) -> i64:
    """The most bytes of the first request: half of what is ready, if that is awaited, and more than ``full`` bytes."""
    one_batch = len(ready) == 1 and not next(iter(ready)).batches
    if one_batch or len(ready) > MOST_COUNTED or not all_are_awaited(ready):
        return NO_LIMIT
    counted = 0
    size: i64 = 0
    for queue in ready:
        for batch in queue.batches:
            size += size_on_the_wire(batch)
            counted += 1
            if counted > MOST_COUNTED:
                return NO_LIMIT
        if queue.due and queue.open is not None:
            size += size_on_the_wire(queue.open)
    return size // 2 if size > full else NO_LIMIT


def all_are_awaited(ready: ReadyQueues) -> bool:
    """Whether all records of the batch whose turn it is are awaited. One batch speaks for all: looking at each would
    take too long."""
    queue = next(iter(ready))
    head = queue.batches[0] if queue.batches else queue.open
    return head is not None and head.result.number_waiting() >= head.count


def size_on_the_wire(batch: ProducerBatch) -> i64:
    """The bytes that the batch takes in a request, as far as that is known."""
    return batch.expected_size() + BATCH_OVERHEAD
