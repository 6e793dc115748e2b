"""Selects the batches that a reader with ``isolation.level=read_committed`` sees.

A broker sends everything up to the last stable offset, and lists the aborted transactions in it. Source:
KIP-98, ``org.apache.kafka.clients.consumer.internals.CompletedFetch``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Final

from aioproducer.errors import CorruptRecordException
from aioproducer.records.record_batch import RecordBatch

_KEY: Final = Struct(">hh")


class ControlRecordType(IntEnum):
    """The types of a transaction's control records, by the number in the record's key; other types exist."""

    ABORT = 0
    COMMIT = 1


def control_record_type(key: bytes | None) -> int:
    """The type in a control record's key: two bytes of version, two of type. Raises CorruptRecordException."""
    if key is None or len(key) < _KEY.size:
        raise CorruptRecordException(f"a control record's key is {key!r}; it must have {_KEY.size} bytes")
    number: int = _KEY.unpack_from(key)[1]
    return number


def committed_batches(
    batches: Iterable[RecordBatch], aborted_transactions: Iterable[tuple[int, int]]
) -> Iterator[RecordBatch]:
    """The batches of one fetch without those of aborted transactions; control batches stay.

    ``aborted_transactions``: (producer id, first offset) from the fetch response.
    """
    coming = deque(sorted(aborted_transactions, key=lambda transaction: transaction[1]))
    aborting: set[int] = set()
    for batch in batches:
        while coming and coming[0][1] <= batch.last_offset:
            aborting.add(coming.popleft()[0])
        if batch.is_control:
            if _aborts(batch):
                aborting.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in aborting:
            continue
        yield batch


def _aborts(batch: RecordBatch) -> bool:
    first = next(batch.records(), None)
    return first is not None and control_record_type(first.key) == ControlRecordType.ABORT
