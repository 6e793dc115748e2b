"""What goes into the next request to a node (``drainBatchesForOneNode``, seed 000).

Compiled when there is a compiler.
"""

from __future__ import annotations

import math
from typing import final

from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.readiness import ReadyQueues, why_waiting
from aioproducer.producer.record_accumulator import RecordAccumulator
from aioproducer.producer.wait_history import READY, note_wait
from aioproducer.records.record_batch_header import BATCH_OVERHEAD

MOST_BATCHES = 200
"""Most batches in one request: making it, and handling its answer, then takes the event loop about 10 ms."""


@final
class Drained:
    """A batch on its way into a request, and the queue it came from."""

    __slots__ = ("batch", "queue")

    def __init__(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self.queue = queue
        self.batch = batch


def drain(
    ready: ReadyQueues,
    accumulator: RecordAccumulator,
    now: float,
    max_request_size: int,
    *,
    keep_order: bool,
    thread_bytes: int = NO_LIMIT,
    timeout: float = math.inf,
) -> list[Drained]:
    """Takes the head batches of ready partitions, at most one each, up to ``max_request_size`` bytes and MOST_BATCHES.

    Partitions are taken from the front and those with more to send go to the back, so no partition starves another.
    Partitions that turn out to have nothing to send leave the ready set; what makes them ready again adds them anew.
    An open batch of ``thread_bytes`` or more is closed and stays: a worker thread compresses it first. Smaller ones are
    compressed when the request is made; at most twice as many bytes of these go into it. A batch that is older than
    ``timeout`` stays: it is about to expire.

    A request may be too large for its line: nothing of it is answered within request.timeout.ms, however often it is
    sent. So a batch whose request timed out lets what is ready go first, once, and the smaller ones of its kind, and
    then shares a request of at most ``request_limit`` bytes.
    """
    drained: list[Drained] = []
    giving_way: list[PartitionQueue] = []
    size = 0
    limit = max_request_size
    to_compress = 0
    for _ in range(len(ready)):
        queue, _ = ready.popitem(last=False)
        waiting = why_waiting(queue, now, keep_order=keep_order)
        if waiting is None and not queue.batches and queue.open is not None and queue.open.size() >= thread_bytes:
            accumulator.close_batch(queue)
            waiting = why_waiting(queue, now, keep_order=keep_order)
        if waiting is not None:
            note_wait(queue, now, waiting)
            queue.ready = False
            continue
        head = queue.batches[0] if queue.batches else queue.open
        assert head is not None
        if head.created + timeout <= now:
            queue.ready = False
            continue
        if head.gives_way:
            head.gives_way = False
            giving_way.append(queue)
            continue
        head_size = head.expected_size() + BATCH_OVERHEAD
        work = 0 if head.body else head.size()
        limit = min(limit, head.request_limit)
        if drained and (
            size + head_size > limit
            or len(drained) == MOST_BATCHES
            or (work > 0 and (to_compress + work) // 2 >= thread_bytes)
        ):
            ready[queue] = None
            ready.move_to_end(queue, last=False)
            break
        if queue.batches:
            queue.batches.popleft()
        else:
            accumulator.take_open(queue)
        if queue.history is not None:
            note_wait(queue, now, READY)
        size += head_size
        to_compress += work
        drained.append(Drained(queue, head))
        if queue.batches or queue.due:
            ready[queue] = None
        else:
            queue.ready = False
    if not giving_way:
        return drained
    giving_way.sort(key=_size_of_head)
    for queue in giving_way:
        ready[queue] = None
    for one in drained:
        if one.queue.ready:
            ready.move_to_end(one.queue)
    return drained or drain(
        ready,
        accumulator,
        now,
        max_request_size,
        keep_order=keep_order,
        thread_bytes=thread_bytes,
        timeout=timeout,
    )


def _size_of_head(queue: PartitionQueue) -> int:
    return len(queue.batches[0].body)
