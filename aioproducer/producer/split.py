"""What becomes of a batch that a broker refuses as too large (``ProducerBatch.split``).

It is cut into smaller ones, in order, under exactly its own sequence numbers: the broker sees what it would have seen
of the whole. If an earlier attempt may have appended the whole, its parts say so. Rules only: no asyncio, no clock.

Compiled when there is a compiler.
"""

from __future__ import annotations

from mypy_extensions import i64

from aioproducer.error_code import ErrorCode
from aioproducer.producer.buffer_pool import BatchBuffer
from aioproducer.producer.produce_result import ProduceResult
from aioproducer.producer.producer_batch import ProducerBatch
from aioproducer.producer.record_sizes import timestamp_delta_at
from aioproducer.producer.sequences import increment_sequence
from aioproducer.records.written_records import WrittenRecords


def may_split(code: ErrorCode, batch: ProducerBatch) -> bool:
    """Whether the answer means smaller batches and not an error: one record cannot be made smaller."""
    return code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1


def target_size(batch: ProducerBatch, limit: int) -> int:
    """Bytes, uncompressed, that its children may have at most.

    ``limit`` is what a new batch may have. But never more than half of what was refused: so there are two children at
    least, and after as many splits as its size has bits each record is alone (KAFKA-8350).
    """
    return min(limit, batch.size() // 2)


def split(batch: ProducerBatch, records: bytes, target: int) -> list[ProducerBatch]:
    """The children of ``batch``, whose uncompressed records these are: closed, and not sealed yet.

    They are as old as the batch and have as many attempts behind them as if it had not been sent this time. Where their
    records were in the batch, ``first`` tells, counted from the one that was drained.
    """
    children: list[ProducerBatch] = []
    walk = WrittenRecords(records)
    index: i64 = 0
    while index < batch.count:
        child = _child(batch, index)
        index = child.append_part(batch, walk, index, target)
        _ = child.freeze()
        children.append(child)
    return children


def _child(batch: ProducerBatch, index: i64) -> ProducerBatch:
    """An empty batch for the records from ``index`` on."""
    parent = batch.result
    result = ProduceResult(parent.loop, parent.topic, parent.partition, parent.hooks)
    timestamp = batch.base_timestamp + timestamp_delta_at(batch.sizes, index)
    child = ProducerBatch(result, BatchBuffer(), 0, timestamp, batch.created)
    child.expected_ratio = batch.expected_ratio
    child.drain_order = batch.drain_order
    child.first = batch.first + index
    child.producer_id = batch.producer_id
    child.producer_epoch = batch.producer_epoch
    if batch.has_sequence():
        child.base_sequence = increment_sequence(batch.base_sequence, index)
    child.ready_at = batch.ready_at
    child.attempts = batch.attempts - 1
    child.excused = batch.excused
    child.leader_epoch = batch.leader_epoch
    child.log = batch.log
    child.maybe_appended = batch.maybe_appended
    child.maybe_before = batch.maybe_before
    child.arrives_until = batch.arrives_until
    child.reshaped = batch.maybe_appended or batch.reshaped
    return child
