"""Chooses the batches of the next request to a node (``drainBatchesForOneNode``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from mypy_extensions import i64, mypyc_attr

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.batches.producer_batch import LEAST_WHOLE, NO_LIMIT, ProducerBatch
from aioproducer.producer.scheduling.readiness import ReadyQueues, why_waiting
from aioproducer.producer.scheduling.wait_history import READY, SLOW_LINE, note_wait
from aioproducer.producer.windows.line_limit import LineLimit

MOST_BATCHES = 200
"""The most batches in one request: making it and handling its answer then takes the event loop 2 to 3 ms."""

LITTLE_GROWN = 2
"""Batches this many times as large as batch.size go together like smaller ones, if the line carries them early."""

MOST_CLOSED = 20
"""The most batches closed for threads at a time, some 50 µs each. A thread that has compressed one wakes the Sender."""

MOST_UNANSWERED = 2
"""The most attempts without an answer of a batch that is no larger than LEAST_WHOLE, before it is split."""

MOST_WAITING = 500
"""The most partitions with nothing to send that one call looks at, some 1 µs each."""


@final
@mypyc_attr(acyclic=True)
class Drained:
    """A batch on its way into a request, and the queue it came from."""

    __slots__ = ("batch", "queue")

    def __init__(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self.queue = queue
        self.batch = batch


@final
@mypyc_attr(acyclic=True)
class Drain:
    """What one call of :func:`drain` has found."""

    __slots__ = ("stopped", "taken")

    def __init__(self, taken: list[Drained], *, stopped: bool) -> None:
        self.taken = taken
        self.stopped = stopped
        """MOST_WAITING partitions have left the ready set, and others are for the next call."""


def drain(
    ready: ReadyQueues,
    accumulator: RecordAccumulator,
    now: float,
    max_request_size: int,
    *,
    keep_order: bool,
    thread_bytes: int,
    timeout: float,
    line: LineLimit,
    cut: Callable[[PartitionQueue, ProducerBatch], object],
    largest: i64 = NO_LIMIT,
    least_whole: i64 = LEAST_WHOLE,
) -> Drain:
    """Takes the head batches of ready partitions, at most one each, up to ``max_request_size`` bytes and MOST_BATCHES.

    Partitions are taken from the front, and those with more to send move to the back, so no partition starves another.
    Partitions with nothing to send leave the ready set; the next event that makes them ready adds them again. When
    MOST_WAITING of them have left, those behind them are for the next call. An open batch of
    ``thread_bytes`` or more is closed and stays: a worker thread compresses it first. When MOST_CLOSED are closed,
    nothing behind them is taken. Smaller ones are compressed when the request is made; at most twice as many
    bytes of these go into it. A batch older than ``timeout`` stays: it is about to expire. A batch larger than the
    ``line`` has carried in time goes alone, after all others, and not before ``line.large_at``. Batches behind the head
    are joined to it (``RecordAccumulator.join``), unless they have no sequences: if the broker refused the whole, its
    parts would go behind later batches. One that is larger than batch.size goes with others only as far as the line has
    carried so much, or they have grown only LITTLE_GROWN times as large and would be answered early.

    ``cut(queue, head)`` is called if the topic would refuse the closed head, and for one head of several records that
    is larger than ``largest``, which is what the node is sure to answer; others are for the next calls, as that may be
    more by then. One of ``least_whole`` bytes or less is cut only after several attempts. Smaller batches replace it,
    perhaps only after a thread has worked on it, or its leader was asked about it.
    """
    drained: list[Drained] = []
    large: list[PartitionQueue] = []
    to_cut: list[PartitionQueue] = []
    size = 0
    limit: i64 = max_request_size
    most: i64 = NO_LIMIT
    if line.most < NO_LIMIT:
        limit = min(limit, line.most)
        if not line.large_is_due(now):
            most = line.most
    carried = line.grown if 0 < line.grown < limit else limit
    to_compress = closed = waited = 0
    for _ in range(len(ready)):
        queue, _ = ready.popitem(last=False)
        waiting = why_waiting(queue, now, keep_order=keep_order)
        if waiting is None and not queue.batches and _must_close(queue.open, accumulator, thread_bytes):
            if closed == MOST_CLOSED:
                _put_back(queue, ready)
                break
            closed += 1
            accumulator.close_batch(queue)
            waiting = why_waiting(queue, now, keep_order=keep_order)
        if waiting is None and queue.batches:
            if len(queue.batches) > 1 and queue.sequences is not None:
                accumulator.join(queue, max_request_size)
            if accumulator.must_be_cut(queue.batches[0]):
                cut(queue, queue.batches[0])
                waiting = why_waiting(queue, now, keep_order=keep_order)
        if waiting is not None:
            note_wait(queue, now, waiting)
            queue.ready = False
            waited += 1
            if waited == MOST_WAITING:
                break
            continue
        head = queue.batches[0] if queue.batches else queue.open
        assert head is not None
        if head.created + timeout <= now:
            queue.ready = False
            continue
        head_size = head.size_on_the_wire()
        if head_size > largest and _may_be_cut(head, accumulator, least_whole):
            to_cut.append(queue)
            continue
        if head_size > most:
            note_wait(queue, now, SLOW_LINE)
            large.append(queue)
            continue
        work = 0 if head.body else head.size()
        room = limit
        if head_size > accumulator.batch_size:
            little_grown = (len(drained) + 1) * LITTLE_GROWN * accumulator.batch_size
            room = min(limit, max(carried, min(little_grown, line.room())))
        if drained and (
            size + head_size > room
            or len(drained) == MOST_BATCHES
            or (work > 0 and (to_compress + work) // 2 >= thread_bytes)
        ):
            _put_back(queue, ready)
            break
        drained.append(_take(queue, ready, accumulator, now))
        size += head_size
        to_compress += work
    if waited == MOST_WAITING:
        for queue in large:  # smaller ones may be behind
            ready[queue] = None
    elif line.most < NO_LIMIT:
        _take_large(large, drained, ready, accumulator, now, line)
    if to_cut:
        _make_smaller(to_cut.pop(0), ready, accumulator, now, keep_order=keep_order, cut=cut)
    for queue in to_cut:
        ready[queue] = None
    return Drain(drained, stopped=waited == MOST_WAITING and len(ready) > 0)


def _must_close(batch: ProducerBatch | None, accumulator: RecordAccumulator, thread_bytes: int) -> bool:
    """Whether an open batch that may leave has to be closed first, to wait until it is compressed or cut."""
    return batch is not None and (batch.size() >= thread_bytes or accumulator.must_be_cut(batch))


def _may_be_cut(batch: ProducerBatch, accumulator: RecordAccumulator, least_whole: i64) -> bool:
    """Whether a batch can be split: it has not been sent, was not answered, or is a part of such a one. One of
    ``least_whole`` bytes or less must have been sent several times."""
    if batch.count == 1:
        return False
    if batch.size() <= accumulator.least_whole(batch.result.topic, least_whole):
        return batch.unanswered >= MOST_UNANSWERED
    return batch.attempts == 0 or batch.unanswered > 0 or batch.reshaped or not batch.has_sequence()


def _make_smaller(
    queue: PartitionQueue,
    ready: ReadyQueues,
    accumulator: RecordAccumulator,
    now: float,
    *,
    keep_order: bool,
    cut: Callable[[PartitionQueue, ProducerBatch], object],
) -> None:
    """Has the head of a partition cut. Unless it has to wait for that, the partition has another turn."""
    if not queue.batches:
        accumulator.close_batch(queue)
    waiting = why_waiting(queue, now, keep_order=keep_order)
    if waiting is None:  # otherwise a thread compresses it first
        cut(queue, queue.batches[0])
        waiting = why_waiting(queue, now, keep_order=keep_order)
    if waiting is None:
        ready[queue] = None
    else:
        note_wait(queue, now, waiting)
        queue.ready = False


def _take_large(
    large: list[PartitionQueue],
    drained: list[Drained],
    ready: ReadyQueues,
    accumulator: RecordAccumulator,
    now: float,
    line: LineLimit,
) -> None:
    """Takes the smallest of the batches too large for the line, if no other goes."""
    large.sort(key=_size_of_head)
    if large and not drained and now >= line.large_at:
        drained.append(_take(large.pop(0), ready, accumulator, now))
    for queue in large:
        ready[queue] = None
    if drained and drained[0].batch.size_on_the_wire() > line.most:
        line.large_sent()
    elif large:
        line.deferred(now)


def _put_back(queue: PartitionQueue, ready: ReadyQueues) -> None:
    """The partition has the first turn again."""
    ready[queue] = None
    ready.move_to_end(queue, last=False)


def _take(queue: PartitionQueue, ready: ReadyQueues, accumulator: RecordAccumulator, now: float) -> Drained:
    """Takes the head; the partition moves to the back if it has more to send."""
    head = queue.batches.popleft() if queue.batches else accumulator.take_open(queue)
    if queue.history is not None:
        note_wait(queue, now, READY)
    if queue.batches or queue.due:
        ready[queue] = None
    else:
        queue.ready = False
    return Drained(queue, head)


def _size_of_head(queue: PartitionQueue) -> int:
    head = queue.batches[0] if queue.batches else queue.open
    return 0 if head is None else head.expected_size()
