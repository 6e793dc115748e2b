"""Joins batches that wait behind each other, which were closed when little was known of their line.

Only batches that have never been sent are joined: nothing of their order or sequence is fixed yet. Rules only: no
asyncio, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mypy_extensions import i64

from aioproducer.producer.batches.buffer_pool import BufferPool
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_writer import varint_size
from aioproducer.records.written_records import WrittenRecords

AGE: Final = 1.0
"""Seconds between the first batch and the last that is joined to it, whose records expire so much earlier."""


def joinable(waiting: Iterable[ProducerBatch], most: i64) -> list[ProducerBatch]:
    """The batches from the first one on that may become one of ``most`` bytes, uncompressed; fewer than two for none.

    Batches that a worker thread has compressed, or compresses, stay as they are.
    """
    found: list[ProducerBatch] = []
    size: i64 = BATCH_OVERHEAD
    count: i64 = 0
    created = 0.0
    base_timestamp: i64 = 0
    for batch in waiting:
        if batch.drain_order >= 0 or batch.compressing or batch.body:
            break
        if not found:
            created = batch.created
            base_timestamp = batch.base_timestamp
        elif batch.created - created > AGE:
            break
        # Farther from its batch's first record, each has a larger timestamp, offset and length.
        count += batch.count
        longer = varint_size(batch.base_timestamp - base_timestamp) + varint_size(count)
        size += batch.written + (batch.count * longer if found else 0)
        if size > most:
            break
        found.append(batch)
    return found


def join(parts: list[ProducerBatch], pool: BufferPool) -> ProducerBatch:
    """One closed batch of all records of ``parts``, as old as the first, to which their results are forwarded.

    The parts are empty then, and what they were charged is its charge.
    """
    first = parts[0]
    parent = first.result
    result = ProduceResult(parent.present_audience(), parent.topic, parent.partition)
    whole = ProducerBatch(result, pool.buffer(), 0, first.base_timestamp, first.created)
    whole.ready_size = first.ready_size
    whole.expected_ratio = first.expected_ratio
    whole.ready_at = first.ready_at
    for part in parts:
        index = whole.count
        _ = whole.append_part(part, WrittenRecords(part.records), 0, part.count, NO_LIMIT)
        part.result.forward([(0, result, int(index))])
        whole.allocated += part.allocated
        part.allocated = 0
        part.release()
    buffer = whole.freeze()
    if buffer is not None:
        pool.recycle(buffer)
    return whole
