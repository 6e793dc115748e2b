"""The Sender of a mock: it ends batches of one record, by hand or at once, without a broker."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Mapping
from random import Random

from aioproducer.errors import DeliveryError, KafkaError, Outcome, TimeoutException
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.metadata.cluster import NO_TOPIC_ID
from aioproducer.producer.accumulator.built_in_partitioner import Partitioning
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator, TopicQueues
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.delivery.wait_all import all_ended
from aioproducer.producer.diagnosis.explanation import Explanation, Obstacle
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.parking.enqueue_wait import notify_all_settled
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.tasks.own_task import start_task
from aioproducer.testing.mock.mock_transactions import MockTransactions
from aioproducer.timing.time_slice import TimeSlice
from aioproducer.types import PartitionInfo, TopicPartition

NODE = 0
"""The node that leads every partition."""


class MockSender:
    """Takes the place of the Sender. ``topics`` has the numbers of partitions; any other topic is created with one
    partition when it is first used.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        lot: ParkingLot,
        metrics: ProducerMetrics,
        failures: FailureLog,
        random: Random,
        transactions: MockTransactions | None,
        *,
        topics: Mapping[str, int],
        auto_complete: bool,
    ) -> None:
        self.fatal: KafkaError | None = None
        self.transactions = transactions
        self._accumulator = accumulator
        self._lot = lot
        self._metrics = metrics
        self._failures = failures
        self._partitioning = Partitioning(random, adaptive=False)
        self._auto_complete = auto_complete
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._pending: deque[tuple[PartitionQueue, ProducerBatch]] = deque()
        self._completing = False
        self._notifying: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._flushing = 0
        self._offsets: dict[TopicPartition, int] = {}
        for name, partitions in topics.items():
            self._create(name, partitions)

    def start(self) -> None:
        if self.transactions is None:
            self._lot.open()

    # Topics

    def _create(self, name: str, partitions: int) -> None:
        queues = TopicQueues(name, NO_TOPIC_ID, self._partitioning)
        queues.queues = [PartitionQueue(name, number, None) for number in range(partitions)]
        for queue in queues.queues:
            queue.leader = NODE
        queues.partitioner.follow(queues.queues)
        self._accumulator.topics[name] = queues
        for _ in self._metrics.keeping_topics(self._accumulator.topics):
            pass

    def known_partitions(self, topic: str) -> tuple[PartitionInfo, ...]:
        if topic not in self._accumulator.topics:
            self._create(topic, 1)
        count = len(self._accumulator.topics[topic].queues)
        return tuple(PartitionInfo(topic, number, NODE, 0, (NODE,), (NODE,), ()) for number in range(count))

    async def partitions_for(self, topic: str, least: int = 1) -> list[PartitionInfo]:
        found = list(self.known_partitions(topic))
        if len(found) < least:
            raise _no_such_partition(topic, len(found))
        return found

    def parked(self, topic: str) -> None:
        """A record waits for its topic, which is created now, or for a partition that will never exist."""
        self.known_partitions(topic)
        self._lot.metadata_arrived(topic)
        self._lot.place()
        if topic in self._lot.metadata:
            self._loop.call_soon(self._fail_without_partition, topic)
        self.look()

    def _fail_without_partition(self, topic: str) -> None:
        count = len(self._accumulator.topics[topic].queues)
        self._lot.refuse_topic(topic, _no_such_partition(topic, count))
        self.look()

    def look(self) -> None:
        """Wakes callers whose records were placed or have failed, and sets the timer of ``max.block.ms`` for others."""
        if self._lot.settled and (self._notifying is None or self._notifying.done()):
            self._notifying = start_task(
                notify_all_settled(self._lot, TimeSlice(self._loop)), "aioproducer mock notify"
            )
        if self._timer is not None:
            self._timer.cancel()
        deadline = self._lot.next_deadline()
        self._timer = None if deadline is None else self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        # Topics are created when they are first used, so only serializers can take that long.
        self._lot.expire(self._loop.time(), lambda topic, since: TimeoutException(f"no metadata for topic {topic!r}"))
        self.look()

    # Batches and how they end

    def batch_opened(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Called by the accumulator for each new batch, which has one record."""
        self._pending.append((queue, batch))
        if (self._auto_complete or self._flushing) and not self._completing:
            self._completing = True
            self._loop.call_soon(self._complete)

    def incomplete(self) -> list[ProducerBatch]:
        return [batch for _, batch in self._pending]

    def pending(self) -> int:
        return len(self._pending)

    def _complete(self) -> None:
        self._completing = False
        for _ in range(len(self._pending)):  # records that callbacks send have their own turn
            self.complete_next()

    def complete_next(self) -> bool:
        """Delivers the oldest record; False if there is none."""
        if not self._pending:
            return False
        queue, batch = self._take_next()
        where = TopicPartition(queue.topic, queue.partition)
        offset = self._offsets.get(where, 0)
        self._offsets[where] = offset + batch.count
        self._metrics.batch_delivered(batch.count, batch.created, self._loop.time())
        batch.succeed(offset, -1)
        return True

    def error_next(self, error: KafkaError, outcome: Outcome) -> bool:
        """Ends the oldest record with this error; False if there is none."""
        if not self._pending:
            return False
        self._fail(*self._take_next(), error, outcome, aborted=False)
        if self.transactions is not None:
            self.transactions.batch_failed(error)
        return True

    def forget(self) -> None:
        """Drops the records that have not ended; their deliveries never end."""
        while self._pending:
            self._take_next()

    def _take_next(self) -> tuple[PartitionQueue, ProducerBatch]:
        queue, batch = self._pending.popleft()
        if queue.open is batch:
            self._accumulator.take_open(queue)
        else:
            queue.batches.popleft()  # the oldest of all is the oldest of its partition
        allocated, batch.allocated = batch.allocated, 0
        self._accumulator.pool.deallocate(allocated)
        batch.release()
        return queue, batch

    def _fail(
        self, queue: PartitionQueue, batch: ProducerBatch, error: KafkaError, outcome: Outcome, *, aborted: bool
    ) -> None:
        ended = DeliveryError.of(error, outcome, (queue.topic, queue.partition))
        now = self._loop.time()
        self._metrics.records_failed(queue.topic, batch.count, now)
        if (unobserved := batch.result.unobserved(batch.count)) > 0:
            self._failures.failed(queue.topic, queue.partition, unobserved, ended, now)
        batch.result.fail(ended, aborted)

    def give_up(self, error: KafkaError) -> None:
        """Fails every record that has not ended."""
        self._lot.fail_in_turns(error)  # nothing is placed meanwhile
        while self._pending:
            self._fail(*self._take_next(), error, Outcome.NOT_SENT, aborted=True)
        self._lot.fail_all(error)

    def failure_added(self) -> None:
        """Called when the log of failures has something to write."""
        self._loop.call_soon(self._write_failures)

    def _write_failures(self) -> None:
        now = self._loop.time()
        self._failures.write(now)
        due = self._failures.next()
        if due is not None and due <= now:
            self._loop.call_soon(self._write_failures)

    async def flush(self) -> None:
        """Delivers every record, and returns when the parked records have ended, too."""
        began = self._loop.time()
        parked = [record.result for record in self._lot.records()]
        for _ in range(len(self._pending)):  # callbacks may send more
            _ = self.complete_next()
        self._flushing += 1  # parked records are delivered as soon as they are placed
        try:
            await all_ended(parked)
        finally:
            self._flushing -= 1
        self._metrics.flushed(self._loop.time() - began)

    # The end of the producer, and its diagnosis

    def fail(self, error: KafkaError) -> None:
        """Makes the producer unusable."""
        self.fatal = error
        if self.transactions is not None:
            self.transactions.producer_failed(error)
        self.abort_at_once(error)

    def abort_at_once(self, error: KafkaError) -> None:
        self._lot.shut()
        self.give_up(error)
        self.look()
        self._failures.close(self._loop.time())

    async def abort_in_turns(self, error: KafkaError) -> None:
        self.abort_at_once(error)

    async def stop(self, grace: float) -> None:
        if self._notifying is not None:
            await self._notifying

    def requests_in_flight(self) -> int:
        return len(self._pending)

    def unanswered_since(self) -> float:
        return math.nan

    def metadata_time(self) -> float:
        return self._began

    def unreachable_since(self) -> float:
        return math.nan

    def explain(self, topic: str, partition: int) -> Explanation:
        mine = [batch for queue, batch in self._pending if (queue.topic, queue.partition) == (topic, partition)]
        if not mine:
            return Explanation(topic, partition, (Obstacle(Reason.NOTHING, "nothing is waiting to be sent"),))
        return Explanation(
            topic,
            partition,
            (Obstacle(Reason.IN_FLIGHT, "it waits for complete_next(), error_next() or flush() of the mock"),),
            batches=len(mine),
            in_flight=len(mine),
            records=sum(batch.count for batch in mine),
            bytes=sum(batch.size() for batch in mine),
            age_ms=(self._loop.time() - mine[0].created) * 1000,
        )


def _no_such_partition(topic: str, count: int) -> TimeoutException:
    return TimeoutException(f"topic {topic!r} of the mock has no such partition, but {count}; see its topics=")
