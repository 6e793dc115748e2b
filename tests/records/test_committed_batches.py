"""The batches that a reader of committed records sees."""

from __future__ import annotations

import struct

import pytest

from aioproducer.broker.log.appended_batch import set_base_offset
from aioproducer.errors import CorruptRecordException
from aioproducer.records.committed_batches import ControlRecordType, committed_batches, control_record_type
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter


def batch(offset: int, producer_id: int, *, control: int | None = None, transactional: bool = True) -> RecordBatch:
    """Two records; or one marker."""
    writer = RecordWriter()
    count = 2 if control is None else 1
    for index in range(count):
        key = None if control is None else struct.pack(">hh", 0, control)
        writer.append(index, 0, key, b"v", None)
    body = writer.freeze()
    header = encode_batch_header(
        body,
        count=count,
        base_timestamp=0,
        max_timestamp=0,
        producer_id=producer_id,
        producer_epoch=0,
        transactional=transactional,
        control=control is not None,
    )
    data = bytearray(header + body)
    set_base_offset(data, offset, 0)
    return RecordBatch(data)


def left(batches: list[RecordBatch], *aborted: tuple[int, int]) -> list[int]:
    return [one.base_offset for one in committed_batches(batches, aborted)]


ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def test_only_the_aborted_transactions_own_batches_are_left_out() -> None:
    log = [
        batch(0, 1),
        batch(2, 2),
        batch(4, -1, transactional=False),
        batch(6, 1, control=ABORT),
        batch(7, 1),
        batch(9, 1, control=COMMIT),
        batch(10, 2, control=COMMIT),
    ]
    assert left(log, (1, 0)) == [2, 4, 6, 7, 9, 10]
    assert left(log) == [0, 2, 4, 6, 7, 9, 10]


def test_an_aborted_transaction_that_begins_within_the_fetch_leaves_what_comes_before_it() -> None:
    log = [batch(0, 1), batch(2, 1, control=COMMIT), batch(3, 1), batch(5, 1, control=ABORT), batch(6, 1)]
    assert left(log, (1, 3)) == [0, 2, 5, 6]


def test_one_producers_transactions_may_be_aborted_again_and_again() -> None:
    log = [batch(0, 1), batch(2, 1, control=ABORT), batch(3, 1), batch(5, 1, control=ABORT), batch(6, 1)]
    assert left(log, (1, 3), (1, 0)) == [2, 5, 6]


def test_an_aborted_transaction_that_began_before_the_fetch_is_still_left_out() -> None:
    assert left([batch(20, 1), batch(22, 2)], (1, 3)) == [22]


def test_a_producer_that_sends_outside_of_transactions_is_not_meant() -> None:
    assert left([batch(0, 1, transactional=False)], (1, 0)) == [0]


def test_other_control_records_abort_nothing() -> None:
    assert left([batch(0, 1, control=2), batch(1, 1)], (1, 0)) == [0]


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_a_marker_without_a_type(key: bytes | None) -> None:
    with pytest.raises(CorruptRecordException, match="must have 4 bytes"):
        control_record_type(key)
