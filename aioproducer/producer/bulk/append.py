"""Appends plain rows of a bulk send to the accumulator.

Batch, room, clock and account are read once per run of neighbours in a batch. The batches are byte for byte those of
single sends.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from aioproducer.producer.accumulator.built_in_partitioner import BuiltInPartitioner
from aioproducer.producer.accumulator.murmur2 import partition_for_key, partition_for_key_of
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.bulk.tally import BulkTally
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_columns import NO_BYTES, ByteColumn, Column, NumberColumn, RecordColumns
from aioproducer.records.record_writer import MAX_RECORD_OVERHEAD

WORK: Final = 500
"""Rows by themselves, or runs of rows for one batch, in one call: then the caller may give the loop a turn."""

OPENING: Final = 10
"""The first row of a batch counts as so many: the batch is opened for it."""


def append_rows(
    accumulator: RecordAccumulator,
    topic: str,
    columns: RecordColumns,
    begin: i64,
    end: i64,
    first: i64,
    tally: BulkTally,
    partitions: NumberColumn | None = None,
    timestamps_ms: NumberColumn | None = None,
) -> i64:
    """Appends rows from ``begin`` to before ``end``; the first of the columns is number ``first`` of the call.

    A partition of -1 is chosen here, a timestamp of -1 means now. Returns the first row left over: it must wait, can
    never be sent, is not bytes, or is for another call, as WORK is done.
    """
    queues = None if accumulator.detour else accumulator.topics.get(topic)
    if queues is None:
        return begin
    count: i64 = len(queues.queues)
    keys = None if accumulator.ignore_keys else columns.keys
    headers = columns.headers
    in_runs = keys is None and headers is None and partitions is None and timestamps_ms is None
    limit = accumulator.largest_record()
    now = accumulator.now_ms()
    at = begin
    left: i64 = WORK
    while at < end and count > 0 and left > 0:
        partition: i64 = -1
        if partitions is not None:
            partition = partitions.value(at)
        timestamp: i64 = -1
        if timestamps_ms is not None:
            timestamp = timestamps_ms.value(at)
        key_size = columns.key_size(at)
        value_size = columns.value_size(at)
        if partition < -1 or partition >= count or timestamp < -1 or key_size == NO_BYTES or value_size == NO_BYTES:
            break
        rest = columns.rest(at, key_size, value_size)
        size = BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + rest
        if size > limit or (headers is not None and headers.nameless(at)):
            break
        queue: PartitionQueue | None = None
        if partition >= 0:
            queue = queues.queues[partition]
        elif keys is not None and key_size >= 0:
            queue = queues.queues[_partition_for(keys, at, key_size, count)]
        if timestamp < 0:
            timestamp = now
        batch = accumulator.batch_for(queues.partitioner, queue, size, timestamp)
        if batch is None:
            break
        number = batch.count
        if in_runs:
            after = _append_run(accumulator, queues.partitioner, batch, columns, at, end, size, timestamp)
        else:
            batch.append_row(timestamp, columns, at, key_size, value_size, rest)
            after = at + 1
        tally.took(batch.result, number, first + at, after - at)
        left -= 1 if number > 0 else OPENING
        at = after
    return at


def _partition_for(keys: Column, row: i64, size: i64, partitions: i64) -> i64:
    if isinstance(keys, ByteColumn):
        return partition_for_key_of(keys.data, keys.begin(row), size, partitions)
    key = keys.value(row)
    assert key is not None
    return partition_for_key(key, partitions)


def _append_run(
    accumulator: RecordAccumulator,
    partitioner: BuiltInPartitioner,
    batch: ProducerBatch,
    columns: RecordColumns,
    begin: i64,
    end: i64,
    size: i64,
    timestamp: i64,
) -> i64:
    """Appends the row at ``begin``, counted with this size, and the rows that fit behind it."""
    bound = size - BATCH_OVERHEAD
    budget = bound  # the partitioner has left the partition
    if partitioner.current is not None:
        budget += 2 * accumulator.batch_size - partitioner.produced
    after, taken = batch.append_run(
        timestamp, columns, begin, end, budget, accumulator.largest_record(), accumulator.pool
    )
    partitioner.produced_more(taken - bound, accumulator.batch_size)
    return after
