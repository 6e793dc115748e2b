"""Turns records into batches: the path of every record.

``append`` is a whole send that need not wait: it finds the topic, picks the partition, and writes the record into the
open batch. If it must wait (unknown topic, no memory, other records waiting), it changes nothing and returns None, and
the caller parks the record. Per record it appends and makes a handle; everything else is per batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64

from aioproducer.errors import (
    IllegalArgumentException,
    IllegalStateException,
    RecordTooLargeException,
    SerializationException,
)
from aioproducer.producer.accumulator.batch_limits import BatchLimits
from aioproducer.producer.accumulator.built_in_partitioner import BuiltInPartitioner, Partitioning
from aioproducer.producer.accumulator.compression_ratio import CompressionRatioEstimator
from aioproducer.producer.accumulator.murmur2 import partition_for_key
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.wall_clock import now_ms
from aioproducer.producer.batches.buffer_pool import BufferPool
from aioproducer.producer.batches.join import join, joinable
from aioproducer.producer.batches.producer_batch import (
    BATCH_COST,
    LEAST_WHOLE,
    NO_LIMIT,
    OPEN_RECORD_COST,
    ProducerBatch,
)
from aioproducer.producer.delivery.audience import Audience
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import Hooks, Loop, ProduceResult
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_writer import record_size_upper_bound, varint_size

if TYPE_CHECKING:
    from uuid import UUID

ASK_EVERY: Final = 1 << 14
"""Bytes of records, some 200 of them at most, after which it is asked whether the loop must have a turn."""

_MAX_INT32: Final = 2**31 - 1
_MAX_INT64: Final = 2**63 - 1


def as_bytes(data: object, what: str) -> bytes | None:
    """Returns a key or value, which must be bytes or None by now."""
    if data is None:
        return None
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise SerializationException(
        f"the {what} is of type {type(data).__name__}; it must be bytes or None, or the producer needs a "
        f"{what}_serializer"
    )


def headers_size(headers: object) -> i64:
    """The bytes that headers take in a record; SerializationException unless they are a sequence of pairs of a str and
    bytes or None."""
    pairs: list[Any]
    if isinstance(headers, list):
        pairs = headers
    elif isinstance(headers, Sequence):
        pairs = list(headers)
    else:
        raise SerializationException(
            f"the headers are of type {type(headers).__name__}; they must be a sequence of tuples (name, value)"
        )
    size: i64 = varint_size(len(pairs))
    for header in pairs:
        if not isinstance(header, tuple) or len(header) != 2:
            raise SerializationException(f"a header is {header!r:.100}; it must be a tuple (name, value)")
        name: object = header[0]
        value: object = header[1]
        if not isinstance(name, str):
            raise SerializationException(f"a header's name is of type {type(name).__name__}; it must be a str")
        name_size: i64 = len(name) if name.isascii() else _encoded_size(name)
        size += varint_size(name_size) + name_size
        if value is None:
            size += 1
        elif isinstance(value, bytes):
            value_size: i64 = len(value)
            size += varint_size(value_size) + value_size
        else:
            raise SerializationException(
                f"the value of header {name!r} is of type {type(value).__name__}; it must be bytes or None"
            )
    return size


def _encoded_size(name: str) -> int:
    try:
        return len(name.encode())
    except UnicodeEncodeError as error:
        raise SerializationException(f"the header name {name!r} cannot be encoded: {error}") from error


def _opened(queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Does nothing; the default ``on_open``."""


def _changed(queue: PartitionQueue) -> None:
    """Does nothing; the default ``on_ready``, ``on_full`` and ``on_awaited``."""


def _joined(parts: list[ProducerBatch], whole: ProducerBatch) -> None:
    """Does nothing; the default ``on_join``."""


def _never() -> bool:
    """The default ``turn_is_due``."""
    return False


def _too_little(queue: PartitionQueue) -> bool:
    """The default ``is_enough``."""
    return False


def _anything(queue: PartitionQueue) -> int:
    """The default ``line_takes``."""
    return NO_LIMIT


@final
class TopicQueues:
    """A topic's partitions, and the choice among them."""

    def __init__(self, name: str, topic_id: UUID, partitioning: Partitioning) -> None:
        self.name = name
        self.topic_id = topic_id
        """Zero until a broker has sent it."""
        self.queues: list[PartitionQueue] = []
        self.partitioner = BuiltInPartitioner(partitioning)


@final
class RecordAccumulator:
    """The open batches of all partitions.

    A batch is ready with ``batch_size`` bytes. While it cannot leave, it takes more, up to ``batch_max_size`` bytes, to
    what its topic is known to take (``limits``), and to what ``line_takes(queue)``, the connection to its leader. It
    takes no more either if it should leave as it is (``is_enough(queue)``).

    ``on_open(queue, batch)`` is called for each new batch, ``on_ready(queue)`` when the open one is ready,
    ``on_full(queue)`` for each one closed before it is drained, ``on_join(parts, whole)`` when one batch has replaced
    several, and ``on_awaited(queue)`` when a task awaits a record of an open batch whose result is ``watched``.
    ``turn_is_due()`` returns whether ``enqueue`` must give the loop a turn; it is called once for every ASK_EVERY bytes
    of records and of memory for new batches. A batch of ``thread_bytes`` that is the next to leave is closed once it is
    ready, to be compressed meanwhile.
    """

    def __init__(
        self,
        pool: BufferPool,
        loop: Loop,
        clock_ms: Callable[[], int] | None,
        *,
        batch_size: i64,
        batch_max_size: i64 = 0,
        thread_bytes: i64 = NO_LIMIT,
        max_request_size: i64,
        ignore_keys: bool,
        ratios: CompressionRatioEstimator | None = None,
        hooks: Hooks | None = None,
        on_open: Callable[[PartitionQueue, ProducerBatch], object] = _opened,
        on_ready: Callable[[PartitionQueue], object] = _changed,
        on_full: Callable[[PartitionQueue], object] = _changed,
        on_awaited: Callable[[PartitionQueue], object] = _changed,
        on_join: Callable[[list[ProducerBatch], ProducerBatch], object] = _joined,
        turn_is_due: Callable[[], bool] = _never,
        line_takes: Callable[[PartitionQueue], int] = _anything,
        is_enough: Callable[[PartitionQueue], bool] = _too_little,
    ) -> None:
        self.pool = pool
        self.loop = loop
        self.clock_ms = clock_ms
        """The clock for timestamps, in milliseconds since the epoch; None is the machine's own."""
        self.batch_size = batch_size
        self.batch_max_size = batch_max_size
        self.thread_bytes = thread_bytes
        self.max_request_size = max_request_size
        self.ignore_keys = ignore_keys
        self._on_open = on_open
        self._on_ready = on_ready
        self._on_full = on_full
        self._on_awaited = on_awaited
        self._on_join = on_join
        self._turn_is_due = turn_is_due
        self._line_takes = line_takes
        self._is_enough = is_enough
        self._until_turn: i64 = ASK_EVERY
        """Bytes, of records and of memory for new batches, until ``turn_is_due`` is called again."""
        self.limits = BatchLimits()
        self.ratios = ratios
        """The compression ratio of each topic; None without compression."""
        self.audience = Audience(loop, hooks, self._awaited)
        self.topics: dict[str, TopicQueues] = {}
        self.detour = True
        """No record may be appended directly: the producer is not started, is closed, or has records in the parking
        lot."""
        self.must_yield = False
        """``enqueue`` must give the loop a turn."""

    def record_size(
        self, value: bytes | None, key: bytes | None, headers: Sequence[tuple[str, bytes | None]] | None
    ) -> i64:
        """The most bytes of a batch of just this record; RecordTooLargeException if it can never be sent, and
        SerializationException for headers that are none."""
        size: i64 = BATCH_OVERHEAD + record_size_upper_bound(
            -1 if key is None else len(key), -1 if value is None else len(value), None
        )
        if headers is not None:
            size += headers_size(headers) - 1  # a byte says that there are none
        self.check_size(size)
        return size

    def largest_record(self) -> i64:
        """The most bytes that a batch of just one record may have."""
        return self.max_request_size if self.max_request_size < self.pool.total else self.pool.total

    def check_size(self, size: i64) -> None:
        """RecordTooLargeException if a record that takes up to ``size`` bytes can never be sent."""
        if size > self.max_request_size:
            raise RecordTooLargeException(
                f"the record takes up to {size} bytes, more than max.request.size={self.max_request_size}: "
                "raise it (and the topic's max.message.bytes), or send a smaller record"
            )
        if size > self.pool.total:
            raise RecordTooLargeException(
                f"the record takes up to {size} bytes, more than buffer.memory={self.pool.total} in all: "
                "raise it, or send a smaller record"
            )

    def append(
        self,
        topic: str,
        value: object,
        key: object,
        partition: object,
        timestamp_ms: object,
        headers: Sequence[tuple[str, bytes | None]] | None,
    ) -> Delivery | None:
        """Appends one record; None, and nothing done, if it cannot be appended now.

        Everything is checked now: a parked record must not fail a check later. SerializationException,
        IllegalArgumentException and RecordTooLargeException mean that it can never be appended.
        """
        value_bytes = as_bytes(value, "value")
        key_bytes = None if key is None else as_bytes(key, "key")
        if partition is not None and not (isinstance(partition, int) and 0 <= partition <= _MAX_INT32):
            raise IllegalArgumentException(f"partition is {partition!r}; it must be an int from 0 on, or None")
        if timestamp_ms is not None and not (isinstance(timestamp_ms, int) and 0 <= timestamp_ms <= _MAX_INT64):
            raise IllegalArgumentException(f"timestamp_ms is {timestamp_ms!r}; it must be an int from 0 on, or None")
        size = self.record_size(value_bytes, key_bytes, headers)
        if self.detour:
            return None
        return self.place(topic, value_bytes, key_bytes, partition, timestamp_ms, headers, size)

    def check(
        self,
        topic: str,
        value: object,
        key: object,
        partition: object,
        timestamp_ms: object,
        headers: Sequence[tuple[str, bytes | None]] | None,
    ) -> None:
        """Raises what ``append`` would raise for the record, and appends nothing."""
        detour = self.detour
        self.detour = True
        try:
            self.append(topic, value, key, partition, timestamp_ms, headers)
        finally:
            self.detour = detour

    def place(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[tuple[str, bytes | None]] | None,
        size: i64,
    ) -> Delivery | None:
        """Appends a checked record, even if others are waiting; None if metadata or memory is missing."""
        queues = self.topics.get(topic)
        if queues is None:
            return None
        partitions: i64 = len(queues.queues)
        if partitions == 0:
            return None
        queue: PartitionQueue | None = None
        if partition is not None:
            index: i64 = partition
            if index >= partitions:
                return None
            queue = queues.queues[index]
        elif key is not None and not self.ignore_keys:
            queue = queues.queues[partition_for_key(key, partitions)]
        timestamp: i64  # not in one expression, which mypyc would box
        if timestamp_ms is None:
            timestamp = self.now_ms()
        else:
            timestamp = timestamp_ms
        batch = self.batch_for(queues.partitioner, queue, size, timestamp)
        return None if batch is None else batch.append(timestamp, key, value, headers)

    def now_ms(self) -> i64:
        """The timestamp of a record without one."""
        clock_ms = self.clock_ms
        if clock_ms is None:
            return now_ms()
        return clock_ms()

    def batch_for(
        self, partitioner: BuiltInPartitioner, given: PartitionQueue | None, size: i64, timestamp: i64
    ) -> ProducerBatch | None:
        """The open batch for the next, checked record; None if there is no memory. It is the ``given`` queue's, or
        without one that of the partitioner's choice.
        """
        sticky = given is None
        if given is not None:
            queue = given
        else:
            current = partitioner.current
            queue = partitioner.next() if current is None else current
        batch = queue.open
        if batch is None or not batch.has_room(size):
            if batch is None or batch.size() + size > batch.limit:
                if batch is not None and not queue.due:
                    self._on_ready(queue)
                if sticky and partitioner.produced >= self.batch_size:
                    queue = partitioner.next()
                    batch = queue.open
                if batch is not None and batch.size() + size > batch.limit and not self._grow(queue, batch, size):
                    self.close_batch(queue)
                    batch = None
            if batch is None:
                batch = self._open_batch(queue, size, timestamp)
                if batch is None:
                    return None
                partitioner.opened(queue)
            elif batch.count > 0 and not self._charge(queue, batch, batch.open_cost(size)):
                return None
        if sticky:
            partitioner.produced_more(size - BATCH_OVERHEAD, self.batch_size)
        if size > batch.largest:
            batch.largest = size
        self._until_turn -= size
        if self._until_turn <= 0:
            self._ask_for_turn()
        return batch

    def close_batch(self, queue: PartitionQueue) -> None:
        """Closes the open batch, if any, and queues it behind the others."""
        if queue.open is not None:
            queue.batches.append(self.take_open(queue))
            self._on_full(queue)

    def _awaited(self, result: ProduceResult) -> None:
        queues = self.topics.get(result.topic)
        if queues is None or result.partition >= len(queues.queues):
            return
        queue = queues.queues[result.partition]
        batch = queue.open
        if batch is not None and batch.result is result:
            self._on_awaited(queue)

    def take_open(self, queue: PartitionQueue) -> ProducerBatch:
        """Closes the open batch for a caller that drains it at once."""
        batch = queue.open
        if batch is None:
            raise IllegalStateException(f"{queue} has no open batch")
        queue.open = None
        queue.due = False
        buffer = batch.freeze()
        if buffer is not None:
            self.pool.recycle(buffer)
        self.trim(batch)
        return batch

    def trim(self, batch: ProducerBatch) -> None:
        """Charges a closed or compressed batch the memory it takes now."""
        cost = batch.cost()
        self.pool.exchange(batch.allocated, cost)
        batch.allocated = cost

    def limit(self, topic: str, size: i64, *, trial: bool = False) -> i64:
        """The bytes of records, uncompressed, of a batch that takes ``size`` bytes on the wire, or what its topic is
        known to take; ``trial`` as in ``BatchLimits.most``."""
        if self.limits.some_refused:
            most = self.limits.most(topic, trial=trial)
            if size > most:
                size = most
        ratios = self.ratios
        if ratios is None:
            return size
        limit: i64 = ratios.limit(topic, size)
        return limit if limit < self.max_request_size else self.max_request_size

    def must_be_cut(self, batch: ProducerBatch) -> bool:
        """Whether a batch of several records, which no broker has seen and which is no trial, is as large as one that
        was refused. A smaller batch is sent: its answer may raise the known limit."""
        limits = self.limits
        if not limits.some_refused or batch.trial or batch.attempts > 0 or batch.maybe_appended or batch.maybe_before:
            return False
        return batch.count > 1 and limits.refuses(batch.result.topic, batch.size_on_the_wire())

    def fitting(self, queue: PartitionQueue, batch: ProducerBatch) -> i64:
        """The bytes of records, uncompressed, of the parts of a batch that :meth:`must_be_cut`, or that is too large
        for its line."""
        topic = queue.topic
        if self.limits.refuses(topic, batch.size_on_the_wire()):
            limit = self._largest(queue)
        else:
            takes = min(self._line_takes(queue), self.max_request_size)
            limit = max(self.limit(topic, max(takes, 1)), self.least_whole(topic))
        most = self.limits.most(topic)
        if most < NO_LIMIT:
            own = float(most - BATCH_OVERHEAD) * float(batch.size()) / float(max(batch.expected_size(), 1))
            limit = min(limit, i64(int(own)))
        return limit

    def least_whole(self, topic: str, size: i64 = LEAST_WHOLE) -> i64:
        """The bytes of records, uncompressed, of a batch of ``size`` bytes, or of batch.size if that is less."""
        return self.limit(topic, min(self.batch_size, size))

    def _largest(self, queue: PartitionQueue) -> i64:
        """The most bytes of records, uncompressed, that a new batch of the queue may come to have."""
        size = self.limit(queue.topic, self.batch_size)
        most = self._most(queue)
        return most if most > size else size

    def _grow(self, queue: PartitionQueue, batch: ProducerBatch, size: i64) -> bool:
        """Lets a batch that is ready and has not left take a record of ``size`` bytes and as much as makes a batch
        ready. False if it is full, or has enough."""
        written = batch.size()
        if written >= self.thread_bytes and not queue.batches:
            return False
        if self._is_enough(queue):
            return False
        most = self._most(queue, trial=batch.trial)
        if written + size > most:
            return False
        limit = written + size + batch.ready_size
        batch.limit = limit if limit < most else most
        return True

    def _most(self, queue: PartitionQueue, *, trial: bool = False) -> i64:
        """The most bytes, uncompressed, to which a batch of the queue may grow; 0 for none beyond batch.size."""
        most: i64 = self._line_takes(queue)
        if most > self.batch_max_size:
            most = self.batch_max_size
        return 0 if most <= self.batch_size else self.limit(queue.topic, most, trial=trial)

    def join(self, queue: PartitionQueue, most: i64) -> None:
        """Joins the first closed batch with those behind it, to at most so many bytes, uncompressed, and as far as one
        that grows now could hold their records."""
        most = min(most, self._most(queue))
        if most > self.thread_bytes:
            most = self.thread_bytes  # a larger one would have to be compressed by a thread first
        parts = joinable(queue.batches, most)
        if len(parts) < 2:
            return
        whole = join(parts, self.pool)
        if self.ratios is not None:
            whole.expected_ratio = self.ratios.expected(queue.topic)  # by which its size was chosen
        self.trim(whole)
        for _ in parts:
            queue.batches.popleft()
        queue.batches.appendleft(whole)
        self._on_join(parts, whole)

    def _charge(self, queue: PartitionQueue, batch: ProducerBatch, cost: i64) -> bool:
        """Charges a batch for its next record; False if there is no memory, and then the batch is ready."""
        if batch.allocated >= cost:
            return True
        if not batch.pay(self.pool, cost):
            if not queue.due:
                self._on_ready(queue)
            return False
        return True

    def _ask_for_turn(self) -> None:
        """So much was appended that ``enqueue`` may have to give the loop a turn."""
        self._until_turn = ASK_EVERY
        if self._turn_is_due():
            self.must_yield = True

    def _open_batch(self, queue: PartitionQueue, size: i64, timestamp_ms: i64) -> ProducerBatch | None:
        pool = self.pool
        allocated: i64 = size + OPEN_RECORD_COST
        if allocated < pool.initial_size:
            allocated = pool.initial_size
        allocated += BATCH_COST
        if allocated > pool.available:
            allocated = size + OPEN_RECORD_COST + BATCH_COST
        if allocated > pool.total:
            allocated = pool.total  # a record that needs all the memory may have it
        if not pool.allocate(allocated):
            return None
        self._until_turn -= allocated  # opening one takes as long as several records
        result = ProduceResult(self.audience, queue.topic, queue.partition)
        created: float = self.loop.time()
        batch = ProducerBatch(result, pool.buffer(), allocated, timestamp_ms, created)
        if self.limits.some_refused:
            batch.trial = self.limits.take_trial(queue.topic, created)
        batch.ready_size = batch.limit = self.limit(queue.topic, self.batch_size, trial=batch.trial)
        if self.ratios is not None:
            batch.expected_ratio = self.ratios.expected(queue.topic)
        queue.open = batch
        self._on_open(queue, batch)
        return batch
