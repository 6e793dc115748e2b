"""The control record that ends a transaction in a partition (``EndTransactionMarker``, ``ControlRecordType``)."""

from __future__ import annotations

from struct import Struct
from typing import Final

from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter

_ABORT: Final = 0
_COMMIT: Final = 1
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
COORDINATOR_EPOCH: Final = 0  # the nodes share one coordinator, so its epoch never changes


def end_transaction_marker(producer_id: int, producer_epoch: int, *, committed: bool, now_ms: int) -> bytes:
    """A control batch of one record; ``now_ms`` is its timestamp."""
    writer = RecordWriter()
    key = _KEY.pack(0, _COMMIT if committed else _ABORT)
    writer.append(0, 0, key, _VALUE.pack(0, COORDINATOR_EPOCH), None)
    body = writer.freeze()
    header = encode_batch_header(
        body,
        count=1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
    return header + body


def is_commit(marker: RecordBatch) -> bool:
    """Whether a control batch commits its transaction; otherwise it aborts it."""
    record = next(marker.records())
    return bytes(record.key or b"") == _KEY.pack(0, _COMMIT)
