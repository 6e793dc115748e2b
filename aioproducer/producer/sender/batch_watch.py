"""Receives the accumulator's reports for the Sender: each new batch, each that is ready, and each full one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.accumulator.incomplete_batches import IncompleteBatches
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.delivery.produce_result import Loop
from aioproducer.producer.scheduling.first_share import is_enough
from aioproducer.producer.scheduling.scheduling import Scheduling
from aioproducer.timing.time_slice import TimeSlice

WANTED_EVERY: Final = 1.0
"""Seconds between two reports to metadata that a topic is in use; metadata forgets a topic only after several."""


@final
class BatchWatch:
    """Schedules batches from their first record on. Times are the loop's, in seconds.

    ``use_topic(topic)`` reports a topic in use to metadata, ``join(queue)`` a partition to the transaction;
    ``compress(queue, batch)`` begins to compress a batch of at least ``thread_bytes`` elsewhere.
    """

    def __init__(
        self,
        loop: Loop,
        incomplete: IncompleteBatches,
        scheduling: Scheduling,
        metrics: ProducerMetrics,
        thread_bytes: int,
        *,
        use_topic: Callable[[str], object],
        join: Callable[[PartitionQueue], object] | None,
        compress: Callable[[PartitionQueue, ProducerBatch], object],
    ) -> None:
        self._loop = loop
        self._incomplete = incomplete
        self._schedule = scheduling.schedule
        self._lines = scheduling.lines
        self._pipelined = scheduling.pipeline is not None
        self._metrics = metrics
        self._thread_bytes = thread_bytes
        self._use_topic = use_topic
        self._join = join
        self._compress = compress
        self._since_pass = TimeSlice(loop)
        """``enqueue`` has had the loop for itself since the last pass."""

    def pass_begins(self) -> None:
        """The Sender has a turn of the loop."""
        self._since_pass.begin()

    def opened(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """The batch has its first record."""
        self._incomplete.add(batch, queue)
        if batch.created - queue.wanted_at >= WANTED_EVERY:
            queue.wanted_at = batch.created
            self._use_topic(queue.topic)
        if self._join is not None:
            self._join(queue)
        self._schedule.opened(queue, batch)
        if self._pipelined:
            self._metrics.batch_lingers((queue.close_at - batch.created) * 1000, batch.created)

    def ready(self, queue: PartitionQueue) -> None:
        """The queue's open batch need not linger."""
        self._schedule.reached(queue, self._loop.time())

    def full(self, queue: PartitionQueue) -> None:
        """The queue's last batch takes no more records."""
        batch = queue.batches[-1]
        if batch.size() >= self._thread_bytes:
            self._compress(queue, batch)
        self._schedule.full(queue, self._loop.time())

    def awaited(self, queue: PartitionQueue) -> None:
        """A task awaits a record of the queue's open batch, which is watched."""
        self._schedule.awaited(queue)

    def joined(self, parts: list[ProducerBatch], whole: ProducerBatch) -> None:
        """One batch has replaced several of a queue."""
        self._incomplete.join(parts, whole)

    def turn_is_due(self) -> bool:
        """Whether ``enqueue`` must give the loop a turn; then the Sender makes a pass, which begins the next slice."""
        if not self._since_pass.over():
            return False
        self._schedule.make_pass()
        return True

    def line_takes(self, queue: PartitionQueue) -> int:
        """The most bytes to which a batch may grow, by what its leader takes, and the line carries in time."""
        line = self._lines.of(queue.leader)
        return min(line.limit.grown, line.frames.most(self._loop.time()))

    def is_enough(self, queue: PartitionQueue) -> bool:
        """Whether the open batch is enough for the first of two requests, and its leader has nothing to answer."""
        batch = queue.open
        return batch is not None and is_enough(batch) and self._lines.of(queue.leader).has_room_for_two()
