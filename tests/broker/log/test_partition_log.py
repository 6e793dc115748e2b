from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.partition_log import LogAppendInfo, PartitionLog
from aioproducer.broker.log.timestamp_search import TimestampAndOffset
from aioproducer.errors import (
    CorruptRecordException,
    InvalidRecordException,
    OffsetOutOfRangeException,
    OutOfOrderSequenceException,
)
from aioproducer.records.record_batch import RecordBatch
from tests.broker.raw_clients.batches import NOW_MS, make_batch


def make_log(**configs: object) -> PartitionLog:
    given = {name.replace("_", "."): value for name, value in configs.items()}
    return PartitionLog("orders-0", TopicConfig.of(given, BrokerConfig.of({})))


def append(
    log: PartitionLog, *values: bytes, leader_epoch: int = 0, now_ms: int = NOW_MS, **header: Any
) -> LogAppendInfo:
    return log.append(RecordBatch(make_batch(*values, **header)), leader_epoch=leader_epoch, now_ms=now_ms)


def values(log: PartitionLog) -> list[bytes | None]:
    return [record.value for record in log.records()]


class TestAppend:
    def test_offsets_go_up_from_zero(self) -> None:
        log = make_log()
        assert append(log, b"a", b"b") == LogAppendInfo(0, 1, -1, duplicate=False)
        assert append(log, b"c") == LogAppendInfo(2, 2, -1, duplicate=False)
        assert [record.offset for record in log.records()] == [0, 1, 2]
        assert values(log) == [b"a", b"b", b"c"]
        assert log.log_end_offset == log.high_watermark == 3

    def test_batches_are_stored_as_they_will_be_read(self) -> None:
        log = make_log()
        append(log, b"a")
        append(log, b"b", leader_epoch=3)
        first, second = log.batches()
        assert (first.base_offset, first.partition_leader_epoch) == (0, 0)
        assert (second.base_offset, second.partition_leader_epoch) == (1, 3)
        for batch in (first, second):
            batch.verify()

    def test_the_clients_bytes_are_copied(self) -> None:
        log = make_log()
        frame = bytearray(make_batch(b"a"))
        log.append(RecordBatch(memoryview(frame)), leader_epoch=0, now_ms=NOW_MS)
        frame[:] = bytes(len(frame))
        assert values(log) == [b"a"]

    def test_a_header_that_lies_about_the_largest_timestamp_is_put_right(self) -> None:
        log = make_log()
        append(log, b"a", b"b", max_timestamp=NOW_MS - 5)
        (batch,) = log.batches()
        batch.verify()
        assert batch.max_timestamp == NOW_MS + 1
        assert log.find_max_timestamp() == TimestampAndOffset(NOW_MS + 1, 1, 0)

    def test_log_append_time(self) -> None:
        log = make_log(message_timestamp_type="LogAppendTime")
        assert append(log, b"a", b"b", now_ms=42).log_append_time == 42
        (batch,) = log.batches()
        batch.verify()
        assert [record.timestamp_ms for record in log.records()] == [42, 42]

    def test_a_refused_change_changes_nothing(self) -> None:
        log = make_log()
        append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
        with pytest.raises(InvalidRecordException):
            append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=1, count=2)
        with pytest.raises(OutOfOrderSequenceException):
            append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=2)
        assert append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=1).first_offset == 1
        assert log.log_end_offset == 2

    def test_a_duplicate_gets_the_first_ones_offsets_and_timestamp(self) -> None:
        log = make_log()
        append(log, b"x")
        first = append(log, b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=0)
        assert first == LogAppendInfo(1, 2, -1, duplicate=False)
        again = append(log, b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=0)
        assert again == LogAppendInfo(1, 2, NOW_MS + 1, duplicate=True)
        assert log.log_end_offset == 3

    def test_a_corrupt_duplicate_is_corrupt(self) -> None:
        log = make_log()
        batch = make_batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
        log.append(RecordBatch(batch), leader_epoch=0, now_ms=NOW_MS)
        with pytest.raises(CorruptRecordException):
            log.append(RecordBatch(batch[:-1] + b"!"), leader_epoch=0, now_ms=NOW_MS)


class TestRead:
    @pytest.fixture
    def log(self) -> PartitionLog:
        log = make_log()
        for first in range(0, 9, 3):
            append(log, *(b"%d" % number for number in range(first, first + 3)))
        return log

    @pytest.mark.parametrize(("offset", "first_batch"), [(0, 0), (2, 0), (3, 3), (8, 6)])
    def test_begins_with_the_batch_that_holds_the_offset(
        self, log: PartitionLog, offset: int, first_batch: int
    ) -> None:
        batches = log.read(offset, 10**6)
        assert [RecordBatch(batch).base_offset for batch in batches] == list(range(first_batch, 9, 3))

    def test_at_the_end_there_is_nothing(self, log: PartitionLog) -> None:
        assert log.read(9, 10**6) == []

    @pytest.mark.parametrize("offset", [-1, 10])
    def test_out_of_range(self, log: PartitionLog, offset: int) -> None:
        with pytest.raises(OffsetOutOfRangeException):
            log.read(offset, 10**6)

    def test_stays_within_the_size(self, log: PartitionLog) -> None:
        size = len(log.read(0, 1)[0])
        assert len(log.read(0, 2 * size)) == 2
        assert len(log.read(0, 2 * size - 1)) == 1
        assert len(log.read(0, 0)) == 1
        assert log.read(0, size - 1, min_one_batch=False) == []


class TestLookUp:
    def test_by_timestamp(self) -> None:
        log = make_log()
        append(log, b"a", b"b", base_timestamp=100, max_timestamp=101)
        append(log, b"c", base_timestamp=50, max_timestamp=50, leader_epoch=1)
        append(log, b"d", b"e", base_timestamp=200, max_timestamp=201, leader_epoch=2)
        assert log.find_by_timestamp(0) == TimestampAndOffset(100, 0, 0)
        assert log.find_by_timestamp(101) == TimestampAndOffset(101, 1, 0)
        assert log.find_by_timestamp(102) == TimestampAndOffset(200, 3, 2)
        assert log.find_by_timestamp(201) == TimestampAndOffset(201, 4, 2)
        assert log.find_by_timestamp(202) is None

    def test_the_largest_timestamp(self) -> None:
        log = make_log()
        assert log.find_max_timestamp() is None
        append(log, b"a", b"b", base_timestamp=100, max_timestamp=101)
        append(log, b"c", base_timestamp=50, max_timestamp=50)
        assert log.find_max_timestamp() == TimestampAndOffset(101, 1, 0)

    def test_leader_epochs(self) -> None:
        log = make_log()
        with pytest.raises(OffsetOutOfRangeException):
            log.leader_epoch_at(0)
        append(log, b"a", b"b", leader_epoch=4)
        append(log, b"c", leader_epoch=5)
        assert [log.leader_epoch_at(offset) for offset in range(3)] == [4, 4, 5]

    @given(
        timestamps=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=3), max_size=8),
        wanted=st.integers(0, 31),
    )
    def test_as_a_scan_would_find_it(self, timestamps: list[list[int]], wanted: int) -> None:
        log = make_log()
        for first, *_ in timestamps:
            append(log, b"a", b"b", base_timestamp=first, max_timestamp=first + 1)
        records = [(record.timestamp_ms, record.offset) for record in log.records()]
        found = log.find_by_timestamp(wanted)
        expected = next((record for record in records if record[0] >= wanted), None)
        assert (found and found[:2]) == expected


class TestDelete:
    def test_records_before_an_offset(self) -> None:
        log = make_log()
        for value in (b"a", b"b", b"c"):
            append(log, value, value)
        size = log.size_in_bytes
        log.delete_records(3)
        assert log.log_start_offset == 3
        assert [batch.base_offset for batch in log.batches()] == [2, 4]
        assert log.size_in_bytes == size * 2 // 3
        with pytest.raises(OffsetOutOfRangeException):
            log.read(2, 1000)
        assert log.find_by_timestamp(0) == TimestampAndOffset(NOW_MS + 1, 3, 0)

    def test_all_records(self) -> None:
        log = make_log()
        append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
        log.delete_records(1)
        assert (log.log_start_offset, log.log_end_offset, log.size_in_bytes) == (1, 1, 0)
        assert log.read(1, 1000) == []
        assert append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0).duplicate
        assert append(log, b"b", producer_id=1, producer_epoch=0, base_sequence=1).first_offset == 1

    @pytest.mark.parametrize("offset", [-1, 2])
    def test_no_other_offset(self, offset: int) -> None:
        log = make_log()
        append(log, b"a")
        with pytest.raises(OffsetOutOfRangeException):
            log.delete_records(offset)

    def test_retention_by_size(self) -> None:
        log = make_log(retention_bytes=10_000)
        for _ in range(100):
            append(log, bytes(500))
            assert log.size_in_bytes <= 10_000
        assert log.size_in_bytes > 8_000
        assert next(log.batches()).base_offset == log.log_start_offset
        assert log.log_end_offset == 100

    def test_the_last_batch_stays_whatever_its_size(self) -> None:
        log = make_log(retention_bytes=0)
        append(log, bytes(500))
        append(log, b"b")
        assert values(log) == [b"b"]
