"""Surroundings for tests of the producer's rules: a loop that stands still, and queues without a cluster."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator
from random import Random
from typing import Any

from aioproducer.errors import DeliveryError, KafkaError, Outcome
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.metadata.cluster import NO_TOPIC_ID
from aioproducer.producer.accumulator.built_in_partitioner import Partitioning
from aioproducer.producer.accumulator.compression_ratio import CompressionRatioEstimator
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator, TopicQueues
from aioproducer.producer.batches.buffer_pool import BatchBuffer, BufferPool
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.delivery.audience import Audience
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.idempotence.producer_ids import ProducerIds
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.windows.line_limit import LineLimit

NOW_MS = 1_700_000_000_000


def _nothing(*_: object) -> None:
    """A callback that does nothing."""


def sequences_of(queue: PartitionQueue) -> PartitionSequences:
    """Those of an idempotent producer's partition."""
    assert queue.sequences is not None
    return queue.sequences


def make_ids(*, patience: float = math.inf) -> ProducerIds:
    """Those of a producer without transactions, which brokers know for a second."""
    return ProducerIds(transactional=False, patience=patience, known_for=1.0)


def make_line() -> LineLimit:
    """Limits nothing until a request times out."""
    return LineLimit(timeout=30.0, pause=1.0, largest=10**6, beside=4)


class Future:
    """As much of an asyncio future as the rules use."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._state = "pending"
        self._outcome: Any = None
        self._callbacks: list[Callable[[Any], object]] = []
        self.told = 0

    def done(self) -> bool:
        return self._state != "pending"

    def cancelled(self) -> bool:
        return self._state == "cancelled"

    def set_result(self, result: Any) -> None:
        self._end("result", result)

    def set_exception(self, error: BaseException) -> None:
        self._end("error", error)

    def cancel(self) -> None:
        if not self.done():
            self._end("cancelled", None)

    def _end(self, state: str, outcome: Any) -> None:
        assert self._state == "pending", "a future that is done was set again"
        self._state = state
        self._outcome = outcome
        self.told += 1
        for callback in self._callbacks:
            self._loop.call_soon(callback, self)

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        assert self._state == "pending"
        self._callbacks.append(callback)

    def result(self) -> Any:
        if self._state == "error":
            raise self._outcome
        assert self._state == "result"
        return self._outcome

    def __await__(self) -> Generator[Any, None, Any]:
        yield self
        return self.result()


class Loop:
    """A loop whose time moves when told to, and which runs what was left for later when told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self.tick = 0.0
        """Seconds that pass with each look at the clock."""
        self._soon: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    def create_future(self) -> Future:
        return Future(self)

    def time(self) -> float:
        self.now += self.tick
        return self.now

    def call_soon(self, callback: Callable[..., object], *args: Any) -> None:
        self._soon.append((callback, args))

    def idle(self) -> bool:
        """Nothing has been left for later."""
        return not self._soon

    def turn(self) -> None:
        """What has been left for later by now; not what that leaves for later in its turn."""
        for _ in range(len(self._soon)):
            callback, args = self._soon.popleft()
            callback(*args)

    def run(self) -> None:
        while self._soon:
            callback, args = self._soon.popleft()
            callback(*args)


_AUDIENCES: deque[Audience] = deque(maxlen=1000)
"""The last ones, because results refer to theirs weakly."""


def audience(loop: Any, hooks: Any = None) -> Audience:
    """That of a producer without anything else."""
    _AUDIENCES.append(Audience(loop, hooks))
    return _AUDIENCES[-1]


def new_result(loop: Any, topic: str = "t", partition: int = 0, hooks: Any = None) -> ProduceResult:
    """A pending result."""
    return ProduceResult(audience(loop, hooks), topic, partition)


def park(result: ProduceResult, lot: Any) -> None:
    """As if its record waited there."""
    result.present_audience().lot = lot
    result.parked = True


def failure(message: str = "no luck", outcome: Outcome = Outcome.UNKNOWN) -> DeliveryError:
    return DeliveryError.of(KafkaError(message), outcome, ("t", 0))


def make_batch(
    loop: Loop, *, topic: str = "t", partition: int = 0, created: float = 0.0, size: int = 100, records: int = 0
) -> ProducerBatch:
    """An open batch with some records of one byte."""
    batch = ProducerBatch(new_result(loop, topic, partition), BatchBuffer(), size, NOW_MS, created)
    for _ in range(records):
        _ = batch.append(NOW_MS, None, b"v", None)
    return batch


def sizes(records: int) -> bytes:
    """Of a batch of so many records, as its result has them."""
    batch = make_batch(Loop(), records=records)
    batch.freeze()
    frozen: bytes = batch.sizes
    return frozen


def succeed(result: ProduceResult, records: int = 10, base_offset: int = 1000) -> bool:
    return result.succeed(base_offset, -1, NOW_MS, sizes(records))


def waiting(delivery: Delivery) -> Future:
    """The future on which a task that awaits the delivery waits."""
    future: Future = next(delivery.__await__())
    return future


class CountingLot:
    """A parking lot that only counts the tasks that await a record, and those that were cancelled."""

    def __init__(self, on_left: Callable[[], object] = lambda: None) -> None:
        self.awaiting = self.cancelled = self.drops = 0
        self._on_left = on_left

    def awaited(self, result: ProduceResult) -> None:
        self.awaiting += 1

    def left(self, result: ProduceResult) -> None:
        self.cancelled += 1
        result.parked = False
        self._on_left()

    def released(self, result: ProduceResult) -> None:
        raise AssertionError("nobody has called wait_all")

    def dropped(self, result: ProduceResult) -> None:
        self.drops += 1


class Hooks:
    """Notes what interceptors would be told, and how deep in the user's code a callback is called."""

    def __init__(self) -> None:
        self.depth = 0
        self.told: list[tuple[ProduceResult, list[tuple[int, Any]]]] = []

    def on_acknowledgement(self, result: ProduceResult, records: list[tuple[int, Any]]) -> None:
        assert result.done()
        self.told.append((result, records))


class Accumulation:
    """An accumulator, its pool, and what it told: batches opened, queues that had one closed."""

    def __init__(
        self,
        *,
        memory: int = 10_000,
        batch_size: int = 1000,
        max_request_size: int = 5000,
        ignore_keys: bool = False,
        seed: int = 0,
        adaptive: bool = False,
        ratios: CompressionRatioEstimator | None = None,
        batch_max_size: int = 0,
        batch_initial_size: int = 0,
        thread_bytes: int = NO_LIMIT,
    ) -> None:
        self.unavailable: set[int] = set()
        self.partitioning = Partitioning(Random(seed), adaptive=adaptive, unavailable=lambda: self.unavailable)
        self.loop = Loop()
        self.now_ms = NOW_MS
        self.opened: list[ProducerBatch] = []
        self.reached: list[PartitionQueue] = []
        self.closed: list[PartitionQueue] = []
        self.joined: list[tuple[list[ProducerBatch], ProducerBatch]] = []
        self.turns = 0
        """How often the accumulator has asked whether the loop must get a turn."""
        self.line_takes = NO_LIMIT
        self.enough = False
        self.pool = BufferPool(memory, max(batch_size, batch_max_size), batch_initial_size)
        self.accumulator = RecordAccumulator(
            self.pool,
            self.loop,
            lambda: self.now_ms,
            batch_size=batch_size,
            batch_max_size=batch_max_size,
            thread_bytes=thread_bytes,
            max_request_size=max_request_size,
            ignore_keys=ignore_keys,
            ratios=ratios,
            on_open=self.batch_opened,
            on_ready=self.batch_ready,
            on_full=self.batch_full,
            on_join=self.batches_joined,
            turn_is_due=self.turn_is_due,
            line_takes=lambda queue: self.line_takes,
            is_enough=lambda queue: self.enough,
        )
        self.accumulator.detour = False

    def batch_opened(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self.opened.append(batch)

    def batch_full(self, queue: PartitionQueue) -> None:
        self.closed.append(queue)

    def batches_joined(self, parts: list[ProducerBatch], whole: ProducerBatch) -> None:
        self.joined.append((parts, whole))

    def batch_ready(self, queue: PartitionQueue) -> None:
        queue.due = True
        self.reached.append(queue)

    def turn_is_due(self) -> bool:
        self.turns += 1
        return False

    def parking_lot(
        self,
        capacity: int,
        failures: FailureLog,
        metrics: ProducerMetrics,
        *,
        wake: Callable[[], object] = _nothing,
        on_failed: Callable[[KafkaError], object] = _nothing,
    ) -> ParkingLot:
        """Its parking lot, without serializers that are awaited."""
        return ParkingLot(
            self.accumulator,
            capacity,
            failures,
            metrics,
            on_failed=on_failed,
            wake=wake,
            on_serializing=_nothing,
            within_serializer=lambda: False,
        )

    def add_topic(self, name: str, partitions: int, *, leader: int = 1, sequences: Any = None) -> list[PartitionQueue]:
        """Makes a topic known, or gives it more partitions."""
        topic = self.accumulator.topics.setdefault(name, TopicQueues(name, NO_TOPIC_ID, self.partitioning))
        for partition in range(len(topic.queues), partitions):
            queue = PartitionQueue(name, partition, None if sequences is None else sequences())
            queue.leader = leader
            topic.queues.append(queue)
        topic.partitioner.follow(topic.queues)
        queues: list[PartitionQueue] = topic.queues
        return queues

    def append(
        self,
        topic: str = "t",
        value: Any = b"v",
        key: Any = None,
        *,
        partition: Any = None,
        timestamp_ms: Any = None,
        headers: Any = None,
    ) -> Any:
        return self.accumulator.append(topic, value, key, partition, timestamp_ms, headers)
