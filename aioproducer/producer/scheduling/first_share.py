"""Divides what tasks await between two requests, where a node has none to answer.

Tasks that await their records send the next ones when these are answered. If one request had the records of all, the
producer would wait while the broker works, and the broker while the tasks run. With two requests one of the two works
while the other does, and both go on like that: the records of a request lead to the next request.

A request has its price, so this pays only where there are MANY records, whose tasks take long to run.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.scheduling.readiness import ReadyQueues

MANY: Final = 200
"""As many records are divided: some 100 µs of the tasks' work are in each half then, about what a request takes."""

MOST_COUNTED: Final = 200
"""The most partitions, and batches, that are looked at. Where there are more, they are several requests anyway."""


def first_share(ready: ReadyQueues) -> i64:
    """The most bytes of the first request: half of what is ready, if that is awaited, and has MANY records."""
    one_batch = len(ready) == 1 and not next(iter(ready)).batches
    if one_batch or len(ready) > MOST_COUNTED or not all_are_awaited(ready):
        return NO_LIMIT
    counted = 0
    records: i64 = 0
    size: i64 = 0
    for queue in ready:
        for batch in queue.batches:
            records += batch.count
            size += batch.size_on_the_wire()
            counted += 1
            if counted > MOST_COUNTED:
                return NO_LIMIT
        if queue.due and queue.open is not None:
            records += queue.open.count
            size += queue.open.size_on_the_wire()
    return size // 2 if records >= MANY else NO_LIMIT


def all_are_awaited(ready: ReadyQueues) -> bool:
    """Whether all records of the batch whose turn it is are awaited. One batch speaks for all: looking at each would
    take too long."""
    queue = next(iter(ready))
    head = queue.batches[0] if queue.batches else queue.open
    return head is not None and head.is_awaited()


def is_enough(batch: ProducerBatch) -> bool:
    """Whether the batch is awaited, and has as many records as the first of two requests needs."""
    return batch.count >= MANY // 2 and batch.is_awaited()
