"""One batch of one partition, from its first record to its end.

CREATED → APPENDING while ``buffer`` is set; READY and DRAINED once frozen; IN_FLIGHT while ``in_flight``; its
:class:`~aioproducer.producer.delivery.produce_result.ProduceResult` has its end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from aioproducer.errors import IllegalStateException
from aioproducer.errors.printable import printable
from aioproducer.producer.batches.buffer_pool import BatchBuffer, BufferPool
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.producer.delivery.record_sizes import key_size_at, timestamp_delta_at, value_size_at
from aioproducer.producer.diagnosis.ledger import Ledger
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_columns import NO_BYTES, RecordColumns
from aioproducer.records.record_writer import MAX_RECORD_OVERHEAD
from aioproducer.records.written_records import WrittenRecords

BATCH_COST: Final = 1536
"""Bytes of memory a batch takes besides its records (measured by ``python -m benchmarks memory``)."""

OPEN_RECORD_COST: Final = 32
"""… and per record while it is open: its 16 bytes of sizes, twice, as their buffer grows by doubling."""

AHEAD: Final = 4
"""An open batch is charged at most one part in this many more than it takes, or ``batch.initial.size``."""

LEAST_WHOLE: Final = 16_384
"""A batch of up to so many bytes, Kafka's batch.size, is split for a slow line only after several attempts without an
answer. Any request takes a fixed time, so many small ones may take longer than one."""

NO_LIMIT: Final = 2**63 - 1
"""More bytes than any batch or request can have."""


# The garbage collector does not look into it (docs/internals/compiled.md).
@final
@mypyc_attr(acyclic=True)
class ProducerBatch:
    """Records for one partition, their bytes, and the state of their sending. Times are the loop's, in seconds."""

    # For the interpreter, whose batches would take three times as much memory with so many attributes in a dict.
    __slots__ = (
        "allocated",
        "arrives_until",
        "asked_about",
        "attempts",
        "awaited_again",
        "base_sequence",
        "base_timestamp",
        "body",
        "buffer",
        "compressing",
        "count",
        "count_before",
        "created",
        "drain_order",
        "excused",
        "expected_ratio",
        "first",
        "header",
        "in_flight",
        "largest",
        "last_error",
        "leader_epoch",
        "ledger",
        "limit",
        "log",
        "looked_at",
        "max_timestamp",
        "maybe_appended",
        "maybe_before",
        "producer_epoch",
        "producer_id",
        "ready_at",
        "ready_size",
        "records",
        "reshaped",
        "result",
        "retry_at",
        "sent_at",
        "sent_to",
        "set_aside",
        "sizes",
        "too_large",
        "trial",
        "unanswered",
        "written",
    )

    def __init__(
        self, result: ProduceResult, buffer: BatchBuffer, allocated: i64, base_timestamp: i64, created: float
    ) -> None:
        self.result = result
        self.buffer: BatchBuffer | None = buffer
        self.allocated = allocated
        self.created = created
        self.ready_size: i64 = allocated
        """Bytes of records, uncompressed, from which on it does not linger."""
        self.limit: i64 = allocated
        """Bytes that it may have now, uncompressed; more while it is ready and cannot leave."""
        self.expected_ratio: float = 1.0
        """Bytes to expect on the wire per byte written."""
        self.trial = False
        """It may be larger than a refused one, to try whether its topic takes more by now."""
        self.count: i64 = 0
        self.largest: i64 = 0
        """An upper bound on the bytes of its largest record, sent alone."""
        self.base_timestamp = base_timestamp
        self.max_timestamp = base_timestamp
        # Set when the batch is frozen, until its body is made:
        self.written: i64 = 0
        self.records: bytes = b""
        self.sizes: bytes = b""
        # Set at the first drain, the same for every attempt (a retry must be byte-identical):
        self.header: bytes = b""
        self.body: bytes = b""
        self.compressing = False
        """A worker thread compresses the records, or decompresses the body to split the batch."""
        self.producer_id: i64 = -1
        self.producer_epoch: i64 = -1
        self.base_sequence: i64 = -1
        self.drain_order: i64 = -1
        self.first: i64 = 0
        """The index of its first record in the batch that was drained; above 0 if that was split."""
        # While it lingers, and tasks await records of it (``Schedule``):
        self.looked_at = False
        self.count_before: i64 = 0
        """Its number of records at the Sender's last look, a turn of the loop ago; 0 before that."""
        self.awaited_again = False
        """A task has awaited a record since then."""
        # The state of its sending:
        self.ready_at: float = math.inf
        """When it became full, its linger ended or it was flushed: later waits have other reasons."""
        self.in_flight = False
        self.sent_to: i64 = -1
        """The node of its last attempt."""
        self.attempts: i64 = 0
        self.excused: i64 = 0
        """Attempts that do not count as retries: the fate of other batches made the broker refuse them."""
        self.retry_at: float = 0.0
        self.sent_at: float = 0.0
        self.leader_epoch: i64 = -1
        self.log: i64 = 0
        """The number of the log it was last sent to (``PartitionSequences.log``)."""
        self.maybe_appended = False
        """An attempt under its present stamp may have appended it, or the batch that it is a part of."""
        self.maybe_before = False
        """An attempt under an earlier stamp may have appended it, if only for a time."""
        self.arrives_until: float = 0.0
        """Until then an unanswered attempt may still be on its way."""
        self.asked_about = False
        """A log inquiry about it is under way."""
        self.too_large = False
        """It is larger than requests that its leader answers; it is split unless the log has it."""
        self.unanswered: i64 = 0
        """Attempts without an answer since it was last asked about."""
        self.set_aside = False
        """It was refused as out of order, and only a batch behind it can show whether it is in the log."""
        self.reshaped = False
        """It is a part of a batch that may be in the log as a whole."""
        self.last_error: str = ""
        self.ledger: Ledger | None = None
        """The ledger of its time; exists from its first retry on."""

    def append(
        self,
        timestamp: i64,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] | None,
    ) -> Delivery:
        """Adds a record; the caller has checked that the batch is open and has room."""
        buffer = self.buffer
        if buffer is None:
            raise IllegalStateException("the batch is closed for appends")
        index = self.count
        delta = timestamp - self.base_timestamp
        buffer.records.append(index, delta, key, value, headers)
        buffer.sizes.append(delta, -1 if key is None else len(key), -1 if value is None else len(value))
        self.count = index + 1
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return Delivery(self.result, index)

    def append_run(
        self, timestamp: i64, columns: RecordColumns, begin: i64, end: i64, budget: i64, longest: i64, pool: BufferPool
    ) -> tuple[i64, i64]:
        """Adds rows from ``begin`` to before ``end``: the first, for which the caller has checked the room, and those
        after it while ``pool`` has memory, all together take less than ``budget``, and none takes more than
        ``longest`` if sent alone. Returns the next row, and an upper bound on the bytes added.
        """
        buffer = self.buffer
        if buffer is None:
            raise IllegalStateException("the batch is closed for appends")
        records = buffer.records
        sizes = buffer.sizes
        delta = timestamp - self.base_timestamp
        index = self.count
        written = records.size()
        room = self.limit - BATCH_OVERHEAD
        alone = longest - BATCH_OVERHEAD
        paid = self.allocated - self.open_cost(BATCH_OVERHEAD) + written  # the most bytes with the next record
        largest = self.largest
        taken: i64 = 0
        at = begin
        while at < end and taken < budget:
            key_size = columns.key_size(at)
            value_size = columns.value_size(at)
            if key_size == NO_BYTES or value_size == NO_BYTES:
                break
            rest = columns.rest(at, key_size, value_size)
            bound = MAX_RECORD_OVERHEAD + rest
            if at > begin:
                if written + bound > room or bound > alone:
                    break
                if written + bound > paid:
                    short = written + bound - paid
                    charged = self.allocated
                    if not self.pay(pool, charged + short):
                        break
                    paid += self.allocated - charged
            columns.append_to(records, index, delta, at, key_size, value_size, rest)
            written = records.size()
            sizes.append(delta, key_size, value_size)
            paid -= OPEN_RECORD_COST
            taken += bound
            if BATCH_OVERHEAD + bound > largest:
                largest = BATCH_OVERHEAD + bound
            index += 1
            at += 1
        self.count = index
        self.largest = largest
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return at, taken

    def append_row(
        self, timestamp: i64, columns: RecordColumns, row: i64, key_size: i64, value_size: i64, rest: i64
    ) -> None:
        """Adds a record from columns (``RecordColumns.rest``); the caller has checked that the batch is open and has
        room.
        """
        buffer = self.buffer
        if buffer is None:
            raise IllegalStateException("the batch is closed for appends")
        index = self.count
        delta = timestamp - self.base_timestamp
        columns.append_to(buffer.records, index, delta, row, key_size, value_size, rest)
        buffer.sizes.append(delta, key_size, value_size)
        self.count = index + 1
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp

    def append_part(self, whole: ProducerBatch, records: WrittenRecords, index: i64, end: i64, limit: i64) -> i64:
        """Adds records of another, closed batch: the one at the cursor ``records``, with this index, and those after it
        and before ``end`` while all together take ``limit`` bytes at most. Returns the next index.
        """
        buffer = self.buffer
        if buffer is None:
            raise IllegalStateException("the batch is closed for appends")
        written = buffer.records
        sizes = whole.sizes
        later = whole.base_timestamp - self.base_timestamp
        overhead: i64 = BATCH_OVERHEAD + MAX_RECORD_OVERHEAD
        alone = overhead + records.rest
        while True:
            delta = timestamp_delta_at(sizes, index) + later
            records.write_to(written, self.count, delta)
            buffer.sizes.append(delta, key_size_at(sizes, index), value_size_at(sizes, index))
            self.count += 1
            if alone > self.largest:
                self.largest = alone
            if self.base_timestamp + delta > self.max_timestamp:
                self.max_timestamp = self.base_timestamp + delta
            index += 1
            if index == whole.count:
                return index
            records.next()
            alone = overhead + records.rest
            if index == end or written.size() + alone > limit:
                return index

    def size(self) -> i64:
        """Bytes of records so far, uncompressed, without the batch's header."""
        buffer = self.buffer
        return self.written if buffer is None else buffer.records.size()

    def expected_size(self) -> i64:
        """Bytes of records on the wire: estimated until they are known."""
        if self.body:
            return len(self.body)
        return int(float(self.size()) * self.expected_ratio)

    def size_on_the_wire(self) -> i64:
        """The same with the batch's header: what the batch takes in a request."""
        return self.expected_size() + BATCH_OVERHEAD

    def is_awaited(self) -> bool:
        """Whether tasks await all its records."""
        return self.result.number_waiting() >= self.count

    def has_room(self, size: i64) -> bool:
        """Whether it may have one more record of ``size`` bytes, and is charged for it."""
        bytes_then = self.size() + size
        if bytes_then > self.limit:
            return False
        return bytes_then + (self.count + 1) * OPEN_RECORD_COST + BATCH_COST + self.result.kept <= self.allocated

    def open_cost(self, size: i64) -> i64:
        """The most bytes of memory it takes with one more record of ``size`` bytes."""
        return self.size() + size + (self.count + 1) * OPEN_RECORD_COST + BATCH_COST + self.result.kept

    def pay(self, pool: BufferPool, cost: i64) -> bool:
        """Takes from the pool what is missing of ``cost``, and a little more for the records to come, if there is.

        Never waits: returns False, and takes nothing, if the pool has less than ``cost`` needs.
        """
        ahead = cost // AHEAD
        if ahead < pool.initial_size:
            ahead = pool.initial_size
        missing = cost - self.allocated
        if missing + ahead <= pool.available:
            missing += ahead
        if not pool.allocate(missing):
            return False
        self.allocated += missing
        return True

    def worth(self) -> i64:
        """How many batches of batch.size it stands for; at least 1."""
        size = self.size()
        return 1 if size < 2 * self.ready_size or self.ready_size <= 0 else size // self.ready_size

    def cost(self) -> i64:
        """Bytes of memory it takes once it is closed for appends."""
        return BATCH_COST + len(self.sizes) + (len(self.body) if self.body else len(self.records)) + self.result.kept

    def freeze(self) -> BatchBuffer | None:
        """Closes the batch for appends; returns the buffer for recycling (None if it was closed before)."""
        buffer = self.buffer
        if buffer is not None:
            self.records = buffer.records.freeze()
            self.written = len(self.records)
            self.sizes = buffer.sizes.freeze()
            self.buffer = None
        return buffer

    def release(self) -> None:
        """Frees the bytes once they cannot be needed again."""
        self.records = b""
        self.header = b""
        self.body = b""

    def has_sequence(self) -> bool:
        return self.base_sequence >= 0

    def succeed(self, base_offset: i64, log_append_time: i64) -> bool:
        return self.result.succeed(base_offset, log_append_time, self.base_timestamp, self.sizes)

    def __repr__(self) -> str:
        result = self.result
        where = f"{printable(result.topic)}-{result.partition}"
        return f"<ProducerBatch {where} count={self.count} sequence={self.base_sequence}>"
