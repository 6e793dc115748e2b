"""Decides when partitions may have something to send: lingers, back-offs, flushes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.scheduling.deadlines import DeadlineHeap
from aioproducer.producer.scheduling.pipeline import Pipeline
from aioproducer.producer.scheduling.readiness import ReadySet
from aioproducer.producer.scheduling.wait_history import NOTHING, note_wait

MOST_DUE: Final = 500
"""The most partitions whose back-off, or whose linger, ends in one pass: that takes well below half a millisecond."""


class Schedule:
    """Puts partitions into the ready set when their time has come. Times are the loop's, in seconds.

    A batch of batch.size does not wait, a retry waits for its back-off, a smaller batch for ``linger`` from its first
    record on, or as the ``pipeline`` says if there is one. With a pipeline, a batch does not linger if all its records
    are awaited, or if some are and a turn of the loop adds none. Nothing lingers during a flush or while records wait
    for memory. It calls ``wake()`` when there is work, and ``wake_at(when)`` when there will be; ``tick(when)`` is the
    first tick of the clock from then on (``LoopClock``).
    """

    def __init__(
        self,
        linger: float,
        *,
        wake: Callable[[], object],
        wake_at: Callable[[float], object],
        tick: Callable[[float], float],
        pipeline: Pipeline | None = None,
    ) -> None:
        self.ready = ReadySet()
        self._linger = linger
        self._pipeline = pipeline
        self._wake = wake
        self._wake_at = wake_at
        self._tick = tick
        self._lingers: DeadlineHeap[PartitionQueue] = DeadlineHeap()
        self._retries: DeadlineHeap[PartitionQueue] = DeadlineHeap()
        self._awaited: list[tuple[PartitionQueue, ProducerBatch]] = []
        """Open batches of which tasks have awaited records since the last pass, or before, and which have grown."""
        self._flushing = 0
        self._hurrying = False

    def opened(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """The queue has an open batch."""
        created = batch.created
        pipeline = self._pipeline
        queue.close_at = created + self._linger if pipeline is None else pipeline.close_at(queue, created)
        if queue.close_at <= created or self._flushing or self._hurrying:
            self._due(queue, created)
        else:
            queue.close_at = self._tick(queue.close_at)
            self._let_linger(queue)
            if pipeline is not None:
                batch.result.watched = True

    def awaited(self, queue: PartitionQueue) -> None:
        """A task awaits a record of the queue's open batch."""
        batch = queue.open
        if batch is None or queue.due:
            return
        if batch.looked_at:
            batch.awaited_again = True
        else:
            batch.looked_at = True
            self._awaited.append((queue, batch))
            self._wake()

    def reached(self, queue: PartitionQueue, now: float) -> None:
        """The queue's open batch has batch.size bytes: it does not linger any more, and may grow while it waits."""
        self._due(queue, now)

    def full(self, queue: PartitionQueue, now: float) -> None:
        """The queue's last batch takes no more records."""
        batch = queue.batches[-1]
        batch.ready_at = min(batch.ready_at, now)
        self.ready.add(queue)
        self._wake()

    def look_at(self, *queues: PartitionQueue) -> None:
        """The queues may be able to send now what was blocked before."""
        for queue in queues:
            self.ready.add(queue)
        self._wake()

    def make_pass(self) -> None:
        """The Sender makes a pass in the next turn of the loop, with or without work."""
        self._wake()

    def again(self, queue: PartitionQueue, when: float, now: float) -> None:
        """The queue may have a batch to send from ``when`` on."""
        if when > now:
            self._retries.push(when, queue)
            self._wake_at(when)
        if queue.batches or queue.due:
            self.ready.add(queue)
        elif queue.open is None:
            note_wait(queue, now, NOTHING)

    def flush_begun(self) -> None:
        """Until :meth:`flush_ended` nothing lingers."""
        self._flushing += 1
        self._wake()

    def flush_ended(self) -> None:
        self._flushing -= 1

    def hurry(self, *, wanted: bool) -> None:
        """A wait for memory must not wait for a linger: while a record waits, all batches are due."""
        self._hurrying = wanted

    def take_due(self, now: float) -> bool:
        """Makes ready what is due at ``now``, for one turn; if some is left, ``next`` stays in the past.

        Returns whether to call it again after a turn of the loop.
        """
        for queue in self._retries.pop_due(now, MOST_DUE):
            self.ready.add(queue)
        if self._flushing or self._hurrying:
            for queue in self._lingers.pop_due(math.inf, MOST_DUE):
                queue.deadline = math.inf
                if queue.open is not None and not queue.due:
                    self._due(queue, now)
        else:
            for queue in self._lingers.pop_due(now, MOST_DUE):
                self._lingered(queue, now)
        if not self._awaited:
            return False
        self._take_awaited(now)
        return len(self._awaited) > 0

    def _take_awaited(self, now: float) -> None:
        """Makes ready the awaited batches that would linger needlessly.

        If all records of a batch are awaited, all their senders wait for it. Otherwise other tasks get a turn of the
        loop first; a batch that has grown by then keeps lingering until another task awaits a record of it.
        """
        awaited, self._awaited = self._awaited, []
        for queue, batch in awaited:
            if queue.open is not batch or queue.due:
                continue
            if batch.is_awaited() or batch.count == batch.count_before:
                if self._pipeline is not None:
                    self._pipeline.awaited(queue.leader, now)
                self._due(queue, now)
            elif batch.count_before == 0 or batch.awaited_again:
                batch.count_before = batch.count
                batch.awaited_again = False
                batch.result.watched = True
                self._awaited.append((queue, batch))
            else:
                batch.count_before = 0
                batch.looked_at = False

    def next(self) -> float | None:
        """The next deadline; in the past if it is over, or nothing lingers."""
        retry, linger = self._retries.next(), self._lingers.next()
        if linger is not None and (self._flushing or self._hurrying):
            return 0.0
        if retry is None or linger is None:
            return linger if retry is None else retry
        return min(retry, linger)

    def _due(self, queue: PartitionQueue, now: float) -> None:
        queue.due = True
        if queue.open is not None:
            queue.open.ready_at = min(queue.open.ready_at, now)
        self.ready.add(queue)
        self._wake()

    def _let_linger(self, queue: PartitionQueue) -> None:
        """Sets the deadline of an open batch, unless the queue has an earlier one, which is moved when it expires."""
        if queue.close_at < queue.deadline:
            queue.deadline = queue.close_at
            self._lingers.push(queue.deadline, queue)
            self._wake_at(queue.deadline)

    def _lingered(self, queue: PartitionQueue, now: float) -> None:
        """The deadline of the queue's open batch, or of an earlier batch, has passed."""
        if queue.deadline > now:
            return  # a deadline set before a later batch got less time
        queue.deadline = math.inf
        if queue.open is None or queue.due:
            return
        if queue.close_at <= now:
            self._due(queue, now)
        else:
            self._let_linger(queue)
