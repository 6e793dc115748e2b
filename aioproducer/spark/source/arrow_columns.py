"""Records that were read, as an Arrow record batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from aioproducer.errors import CorruptRecordException
from aioproducer.records.column_buffers import ByteBuffers, ColumnBuffers, HeaderBuffers
from aioproducer.records.record_batch import RecordBatch
from aioproducer.types import TopicPartition

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_BATCH = pa.struct(
    [
        ("baseOffset", pa.int64()),
        ("sizeInBytes", pa.int32()),
        ("recordCount", pa.int32()),
        ("compression", pa.string()),
        ("producerId", pa.int64()),
        ("producerEpoch", pa.int32()),
        ("sequence", pa.int32()),
        ("leaderEpoch", pa.int32()),
        ("transactional", pa.bool_()),
        ("control", pa.bool_()),
    ]
)
_HEADERS = pa.list_(pa.field("element", _HEADER))

ARROW_TYPES: Mapping[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": _HEADERS,
    "batch": _BATCH,
}
"""All columns, with the types that Spark expects."""

_SEQUENCES = 0x7FFF_FFFF
"""After the largest sequence comes 0."""


class Run(NamedTuple):
    """A number of consecutive records that were read from one batch."""

    records: int
    batch: RecordBatch


def arrow_batch(
    schema: pa.Schema, partition: TopicPartition, buffers: ColumnBuffers, runs: Sequence[Run]
) -> pa.RecordBatch:
    """The columns of ``schema``, one row for each record. CorruptRecordException for a timestamp beyond the year
    294247, which Spark's microseconds cannot express."""
    columns = _Columns(partition, buffers, runs)
    return pa.RecordBatch.from_arrays([columns.column(name) for name in schema.names], schema=schema)


class _Columns:
    def __init__(self, partition: TopicPartition, buffers: ColumnBuffers, runs: Sequence[Run]) -> None:
        self._partition = partition
        self._buffers = buffers
        self._count = buffers.rows
        self._runs = runs
        ends = []
        end = 0
        for run in runs:
            end += run.records
            ends.append(end)
        self._run_ends = pa.array(ends, pa.int32())
        self._offsets = pa.Array.from_buffers(pa.int64(), self._count, [None, pa.py_buffer(buffers.offsets)])

    def column(self, name: str) -> Any:
        buffers = self._buffers
        match name:
            case "key" if buffers.keys is not None:
                return _bytes(buffers.keys, self._count, pa.binary())
            case "value" if buffers.values is not None:
                return _bytes(buffers.values, self._count, pa.binary())
            case "topic":
                return pa.repeat(pa.scalar(self._partition.topic, pa.string()), self._count)
            case "partition":
                return pa.repeat(pa.scalar(self._partition.partition, pa.int32()), self._count)
            case "offset":
                return self._offsets
            case "timestamp":
                return self._timestamps()
            case "timestampType":
                return self._spread(pa.int32(), lambda batch: int(batch.timestamp_type.value))
            case "headers" if buffers.headers is not None:
                return _headers(buffers.headers, self._count)
            case "batch":
                return self._batch()
        raise KeyError(f"column {name!r} was not decoded")

    def _timestamps(self) -> Any:
        stamps = pa.Array.from_buffers(
            pa.timestamp("ms", tz="UTC"), self._count, [None, pa.py_buffer(self._buffers.timestamps)]
        )
        try:
            return stamps.cast(pa.timestamp("us", tz="UTC"))
        except pa.ArrowInvalid as error:
            first, last = self._offsets[0].as_py(), self._offsets[-1].as_py()
            raise CorruptRecordException(
                f"{self._partition}: a timestamp of the records {first} to {last} does not fit Spark's microseconds: "
                f"{error}; leave the column out with .schema(…) to read the others"
            ) from error

    def _batch(self) -> Any:
        spread = self._spread
        # Counted from the batch's first record; null without a producer id.
        first = spread(pa.int64(), lambda batch: _known(batch.base_sequence, batch.base_sequence - batch.base_offset))
        sequences = pc.bit_wise_and(pc.add(first, self._offsets), pa.scalar(_SEQUENCES, pa.int64()))
        fields = {
            "baseOffset": spread(pa.int64(), lambda batch: batch.base_offset),
            "sizeInBytes": spread(pa.int32(), lambda batch: batch.size_in_bytes),
            "recordCount": spread(pa.int32(), lambda batch: batch.count),
            "compression": spread(pa.string(), lambda batch: str(batch.codec)),
            "producerId": spread(pa.int64(), lambda batch: _known(batch.producer_id, batch.producer_id)),
            "producerEpoch": spread(pa.int32(), lambda batch: _known(batch.producer_epoch, batch.producer_epoch)),
            "sequence": sequences.cast(pa.int32()),
            "leaderEpoch": spread(pa.int32(), lambda batch: batch.partition_leader_epoch),
            "transactional": spread(pa.bool_(), lambda batch: batch.is_transactional),
            "control": spread(pa.bool_(), lambda batch: batch.is_control),
        }
        return pa.StructArray.from_arrays([fields[field.name] for field in _BATCH], fields=list(_BATCH))

    def _spread(self, kind: Any, of: Callable[[RecordBatch], object]) -> Any:
        """A value of each batch, repeated for each of its records."""
        values = pa.array([of(run.batch) for run in self._runs], kind)
        return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(self._run_ends, values))


def _known(number: int, value: int) -> int | None:
    """The value, or null if the number is one of those that mean none."""
    return value if number >= 0 else None


def _bytes(buffers: ByteBuffers, count: int, kind: Any) -> Any:
    valid = None if buffers.valid is None else pa.py_buffer(buffers.valid)
    return pa.Array.from_buffers(kind, count, [valid, pa.py_buffer(buffers.ends), pa.py_buffer(buffers.data)])


def _headers(buffers: HeaderBuffers, count: int) -> Any:
    """Null for a record without headers, as Spark's Kafka source has it."""
    total = len(buffers.names.ends) // 4 - 1
    names = _bytes(buffers.names, total, pa.string())
    values = _bytes(buffers.values, total, pa.binary())
    pairs = pa.StructArray.from_arrays([names, values], fields=list(_HEADER))
    ends = pa.py_buffer(buffers.ends)
    lists = pa.Array.from_buffers(_HEADERS, count, [None, ends], children=[pairs])
    there = pc.greater(pc.list_value_length(lists), 0)
    return pa.Array.from_buffers(_HEADERS, count, [there.buffers()[1], ends], children=[pairs])
