from __future__ import annotations

import logging
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.log_checkpoint import LogCheckpoint
from aioproducer.broker.log.partition_log import PartitionLog
from aioproducer.broker.log.producer_state import ProducerSnapshot, ProducerStateManager
from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.repair import damaged
from aioproducer.broker.storage.segments.stored_batches import Recovered, StoredBatches
from aioproducer.errors import (
    CorruptRecordException,
    DataDirectoryException,
    KafkaStorageException,
    OffsetOutOfRangeException,
)
from aioproducer.records.record_batch import RecordBatch
from tests.broker.raw_clients.batches import NOW_MS, make_batch
from tests.broker.storage.faulty_files import FaultyFiles

DIRECTORY = "orders-0"


class Keeper:
    """Commits when a test calls it."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.start = 0
        self.producers: list[ProducerSnapshot] = []
        self.snapshots = 0
        self.failed = False
        self.recover = False
        self.synced_to = 0
        self.unsynced: list[str] = []

    def check(self) -> None:
        if self.failed:
            raise KafkaStorageException("failed")

    def names(self, directory: str) -> list[str]:
        return self.files.names(directory)

    def recovery_point(self, key: tuple[str, int]) -> int:
        return self.synced_to

    def recovered(self, found: Recovered) -> None:
        if found.damage and not self.recover:
            raise damaged(self.files, found.damage)
        for repair in found.repairs:
            repair.run(self.files)
        if found.repairs:
            self.files.sync_directory(DIRECTORY)
        self.unsynced = found.unsynced

    def log_removed(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.files.remove(path)

    def log_changed(self, batches: StoredBatches) -> None:
        pass

    def log_start_moved(self, batches: StoredBatches, log_start_offset: int) -> None:
        self.start = log_start_offset

    def keep_producers(self, key: tuple[str, int], producer_state: ProducerStateManager) -> None:
        self.producers = producer_state.snapshot()
        self.snapshots += 1

    def commit(self, batches: StoredBatches) -> None:
        writes, removals = batches.take()
        for write in writes:
            self.files.append(write.path, write.batches)
            self.files.sync(write.path)
        batches.written(writes)
        for path in removals:
            self.files.remove(path)
        self.files.sync_directory(DIRECTORY)


class Stored:
    """A log on disk, and what a restart makes of it. A segment has room for ``per_segment`` batches of one record."""

    def __init__(self, per_segment: int = 3, seed: int = 0) -> None:
        self.files = FaultyFiles(seed)
        self.files.make_directory(DIRECTORY)
        self.keeper = Keeper(self.files)
        self._room = per_segment * len(make_batch(b"0"))
        self.restart()

    def restart(self, checkpoint: LogCheckpoint | None = None) -> None:
        config = TopicConfig.of({}, BrokerConfig.of({}))
        self.batches = StoredBatches(self.files, DIRECTORY, ("id", 0), self.keeper, config)
        self.log = PartitionLog(DIRECTORY, config, self.batches)
        self.batches._segment_bytes = self._room  # smaller ones than Kafka allows
        self.log.recover(self.keeper.start, self.keeper.producers, checkpoint)

    def append(self, *values: bytes, **header: Any) -> None:
        self.log.append(RecordBatch(make_batch(*values, **header)), leader_epoch=0, now_ms=NOW_MS)

    def commit(self) -> None:
        self.keeper.commit(self.batches)

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.log.records()]


def segment(base_offset: int) -> str:
    return f"{DIRECTORY}/{base_offset:020}.log"


def test_segments_are_kafkas_files() -> None:
    stored = Stored()
    for number in range(7):
        stored.append(b"%d" % number)
    stored.commit()
    assert stored.files.names(DIRECTORY) == [f"{offset:020}.log" for offset in (0, 3, 6)]
    content = stored.files.read(segment(3), 0, 10_000)
    assert content == b"".join(stored.log.read(3, 10_000)[:3])


@pytest.mark.parametrize("committed", [0, 1, 4, 10])
def test_reads_are_the_same_before_and_after_a_commit(committed: int) -> None:
    stored, memory = Stored(), PartitionLog("memory", TopicConfig.of({}, BrokerConfig.of({})))
    for number in range(10):
        batch = make_batch(*[b"%d" % number] * (number % 3 + 1))
        memory.append(RecordBatch(batch), leader_epoch=0, now_ms=NOW_MS)
        stored.log.append(RecordBatch(batch), leader_epoch=0, now_ms=NOW_MS)
        if number + 1 == committed:
            stored.commit()
    for offset in range(memory.log_end_offset + 1):
        for max_bytes in (0, 100, 200, 10_000):
            for least in (True, False):
                expected = memory.read(offset, max_bytes, min_one_batch=least)
                assert list(map(bytes, stored.log.read(offset, max_bytes, min_one_batch=least))) == expected
    assert stored.log.find_by_timestamp(NOW_MS + 1) == memory.find_by_timestamp(NOW_MS + 1)
    assert stored.log.size_in_bytes == memory.size_in_bytes


def test_a_restart_finds_offsets_timestamps_and_producers() -> None:
    stored = Stored()
    stored.append(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0)
    stored.append(b"c", producer_id=7, producer_epoch=0, base_sequence=2)
    stored.append(b"d", producer_id=8, producer_epoch=1, base_sequence=0, transactional=True)
    stored.append(b"e", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    stored.log.append_marker(8, 1, committed=False, leader_epoch=0, now_ms=NOW_MS)
    before = stored.log
    stored.commit()
    stored.restart()
    log = stored.log
    assert log is not before
    assert (log.log_end_offset, log.last_stable_offset) == (6, 4)
    assert log.aborted_transactions(0, 6) == before.aborted_transactions(0, 6) != []
    assert log.active_producers() == before.active_producers()
    assert log.find_max_timestamp() == before.find_max_timestamp()
    retry = RecordBatch(make_batch(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0))
    assert log.append(retry, leader_epoch=0, now_ms=NOW_MS).duplicate


def test_deleted_records_stay_deleted_and_files_go_with_their_last_batch() -> None:
    stored = Stored()
    for number in range(8):
        stored.append(b"%d" % number)
    stored.commit()
    stored.log.delete_records(5)
    stored.commit()
    assert stored.files.names(DIRECTORY) == [f"{offset:020}.log" for offset in (3, 6)]
    stored.restart()
    assert (stored.log.log_start_offset, stored.log.log_end_offset) == (5, 8)
    assert stored.values() == [b"5", b"6", b"7"]
    with pytest.raises(OffsetOutOfRangeException):
        stored.log.read(4, 100)


def test_all_records_deleted_and_the_offsets_go_on() -> None:
    stored = Stored()
    for number in range(4):
        stored.append(b"%d" % number)
    stored.commit()
    stored.log.delete_records(4)
    stored.commit()
    stored.restart()
    assert (stored.log.log_start_offset, stored.log.log_end_offset) == (4, 4)
    stored.append(b"next")
    stored.commit()
    stored.restart()
    assert stored.values() == [b"next"]
    assert stored.log.log_end_offset == 5


def test_a_log_that_ends_before_its_start_begins_anew_there() -> None:
    stored = Stored()
    for number in range(4):
        stored.append(b"%d" % number)
    stored.commit()
    stored.keeper.start = 10
    stored.restart()
    assert (stored.log.log_start_offset, stored.log.log_end_offset, len(stored.log._index)) == (10, 10, 0)
    stored.append(b"next")
    stored.commit()
    stored.restart()
    assert stored.values() == [b"next"]


def test_files_are_removed_only_when_nothing_has_to_be_written_to_them() -> None:
    stored = Stored()
    for number in range(4):
        stored.append(b"%d" % number)
    stored.log.delete_records(4)
    stored.commit()
    stored.commit()
    stored.restart()
    assert stored.log.log_end_offset == 4


def test_an_unfinished_removal_of_files_is_finished() -> None:
    """The first of two files is still there after a crash, the second is gone."""
    stored = Stored()
    for number in range(8):
        stored.append(b"%d" % number)
    stored.commit()
    stored.keeper.start = 6
    stored.files.remove(segment(3))
    stored.restart()
    assert stored.files.names(DIRECTORY) == [f"{6:020}.log"]
    assert stored.values() == [b"6", b"7"]


class TestWhatIsBad:
    @pytest.fixture
    def stored(self) -> Stored:
        stored = Stored()
        for number in range(5):
            stored.append(b"%d" % number)
        stored.commit()
        return stored

    def damage(self, stored: Stored, path: str, at: int, data: bytes) -> None:
        content = bytearray(stored.files.read(path, 0, 10_000))
        content[at : at + len(data)] = data
        stored.files.truncate(path, 0)
        stored.files.append(path, [content])

    @pytest.mark.parametrize(
        ("at", "data"),
        [(8, b"\0\0\0\0"), (8, b"\xff\xff\xff\xff"), (8, b"\x7f\xff\xff\xff"), (16, b"\1"), (60, b"\7"), (7, b"\x09")],
        ids=["no length", "negative length", "a length beyond the file", "magic", "CRC", "offset"],
    )
    def test_the_log_is_cut_off_at_the_first_bad_batch(
        self, stored: Stored, at: int, data: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        size = len(make_batch(b"0"))
        self.damage(stored, segment(0), size + at, data)
        with caplog.at_level(logging.WARNING):
            stored.restart()
        assert stored.values() == [b"0"]
        assert stored.files.size(segment(0)) == size
        kept = [f"{0:020}.log", f"{0:020}.log.{size}.torn", f"{3:020}.log.torn"]
        assert stored.files.names(DIRECTORY) == kept
        assert f"{segment(0)} is cut off at byte {size}: " in caplog.text
        assert "The log ends at offset 1; the rest is kept in *.torn, and 1 later files" in caplog.text
        stored.append(b"again")
        stored.commit()
        stored.restart()
        assert stored.values() == [b"0", b"again"]

    def test_bytes_that_were_cut_off_do_not_come_back(self) -> None:
        assert not any(map(self.comes_back, range(50)))

    def test_a_cut_that_is_not_synced_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        right = FaultyFiles.sync
        monkeypatch.setattr(
            FaultyFiles,
            "sync",
            lambda files, path: files.names_of_operations[-1].startswith("truncate") or right(files, path),
        )
        assert any(map(self.comes_back, range(50)))

    def comes_back(self, seed: int) -> bool:
        """The second of three batches is bad, so the third goes; then the machine crashes while another second is
        written. Whether the third is behind that afterwards."""
        stored = Stored(seed=seed)
        for number in range(3):
            stored.append(b"%d" % number)
        stored.commit()
        self.damage(stored, segment(0), len(make_batch(b"0")) + 60, b"\7")
        stored.files.sync(segment(0))
        stored.files.sync_directory("")
        stored.restart()
        assert stored.values() == [b"0"]
        stored.append(b"n")
        ((write,), _) = stored.batches.take()
        stored.files.append(write.path, write.batches)
        stored.files.crash()
        stored.restart()
        assert stored.values() in ([b"0"], [b"0", b"n"], [b"0", b"n", b"2"])
        return len(stored.values()) == 3

    def test_every_length_of_the_last_file(self, stored: Stored) -> None:
        whole = stored.files.read(segment(3), 0, 1000)
        for length in range(len(whole)):
            stored.files.remove(segment(3))
            stored.files.append(segment(3), [whole[:length]])
            stored.restart()
            assert stored.values() == [b"0", b"1", b"2", b"3"][: 3 + length // len(make_batch(b"0"))]

    def test_zeros_after_the_last_batch(self, stored: Stored) -> None:
        stored.files.append(segment(3), [bytes(5000)])
        stored.restart()
        assert stored.values() == [b"0", b"1", b"2", b"3", b"4"]

    def test_a_gap_between_two_files(self, stored: Stored) -> None:
        stored.files.truncate(segment(0), len(make_batch(b"0")))
        stored.restart()
        assert stored.values() == [b"0"]
        assert stored.files.names(DIRECTORY) == [f"{0:020}.log", f"{3:020}.log.torn"]

    def test_a_file_that_is_shorter_than_it_was_is_an_error_of_the_storage(self, stored: Stored) -> None:
        stored.files.truncate(segment(0), 10)
        with pytest.raises(KafkaStorageException, match="ends at byte 10"):
            stored.log.read(0, 1000)
        stored.files.remove(segment(0))
        with pytest.raises(KafkaStorageException, match="cannot be read"):
            stored.log.read(0, 1000)

    @pytest.mark.parametrize("seed", range(20))
    def test_random_bytes(self, stored: Stored, seed: int) -> None:
        random = Random(seed)
        self.damage(stored, segment(0), random.randrange(200), random.randbytes(20))
        stored.restart()
        assert stored.values() == [b"0", b"1", b"2", b"3", b"4"][: len(stored.values())]


class TestDamage:
    """Seven batches of one record in three files, all of them synced, so no crash explains damage to them."""

    @pytest.fixture
    def stored(self) -> Stored:
        return self.synced()

    def synced(self) -> Stored:
        stored = Stored()
        for number in range(7):
            stored.append(b"%d" % number)
        stored.commit()
        stored.keeper.synced_to = 7
        return stored

    def recover(self, stored: Stored) -> dict[int, bytes | None]:
        """What is left, by offset; a second start finds nothing wrong."""
        stored.keeper.recover = True
        stored.restart()
        found = {record.offset: record.value for record in stored.log.records()}
        stored.keeper.recover = False
        stored.restart()
        assert {record.offset: record.value for record in stored.log.records()} == found
        return found

    def is_damaged(self, stored: Stored) -> str:
        """What the start says; it changes nothing."""
        before = {name: stored.files.read(f"{DIRECTORY}/{name}", 0, 10_000) for name in stored.files.names(DIRECTORY)}
        with pytest.raises(DataDirectoryException) as caught:
            stored.restart()
        after = {name: stored.files.read(f"{DIRECTORY}/{name}", 0, 10_000) for name in stored.files.names(DIRECTORY)}
        assert after == before
        return str(caught.value)

    @pytest.mark.parametrize("base_offset", [0, 3, 6])
    def test_any_flipped_bit_is_reported_or_corrected(self, base_offset: int) -> None:
        size = len(make_batch(b"0"))
        whole = {number: b"%d" % number for number in range(7)}
        damaged = 0
        for at in range(size * (3 if base_offset < 6 else 1)):
            stored = self.synced()
            content = bytearray(stored.files.read(segment(base_offset), 0, 1000))
            content[at] ^= 0x40
            stored.files.truncate(segment(base_offset), 0)
            stored.files.append(segment(base_offset), [content])
            hit = base_offset + at // size
            try:
                stored.restart()
            except DataDirectoryException:
                damaged += 1
                assert f"{DIRECTORY}: records {hit} to {hit} cannot be read" in self.is_damaged(stored)
                assert self.recover(stored) == {offset: value for offset, value in whole.items() if offset != hit}
                names = stored.files.names(DIRECTORY)
                assert [name for name in names if name.endswith(".damaged")] == [
                    f"{base_offset:020}.log.{(hit - base_offset) * size}.damaged"
                ]
            else:
                assert {record.offset: record.value for record in stored.log.records()} == whole
            assert stored.log.log_end_offset == 7
            stored.append(b"next")
            assert list(stored.values())[-1] == b"next"
        outside = 21 - 4  # bytes of a header outside its CRC are corrected, except for the leader epoch
        assert damaged == (size - outside) * (3 if base_offset < 6 else 1)

    def test_correctable_batches_are_corrected_and_the_old_bytes_kept(self, stored: Stored) -> None:
        content = bytearray(stored.files.read(segment(0), 0, 1000))
        content[9] ^= 0x40  # of the length
        stored.files.truncate(segment(0), 0)
        stored.files.append(segment(0), [content])
        stored.restart()
        assert len(stored.values()) == 7
        size = len(make_batch(b"0"))
        assert stored.files.read(f"{segment(0)}.0.damaged", 0, 1000) == bytes(content)[:size]

    @pytest.mark.parametrize(("gone", "lost"), [(0, range(3)), (3, range(3, 6)), (6, range(6, 7))])
    def test_a_file_is_missing(self, stored: Stored, gone: int, lost: range) -> None:
        stored.files.remove(segment(gone))
        assert f"records {lost[0]} to {lost[-1]} cannot be read" in self.is_damaged(stored)
        assert sorted(self.recover(stored)) == sorted({*range(7)} - {*lost})
        assert stored.log.log_start_offset == (3 if gone == 0 else 0)
        assert stored.log.log_end_offset == 7

    def test_all_files_are_missing(self, stored: Stored) -> None:
        stored.files.remove(DIRECTORY)
        assert "records 0 to 6 cannot be read" in self.is_damaged(stored)
        assert self.recover(stored) == {}
        assert (stored.log.log_start_offset, stored.log.log_end_offset) == (0, 7)

    @pytest.mark.parametrize("left", [0, 1, 100, 150])
    def test_the_end_of_a_file_is_missing(self, stored: Stored, left: int) -> None:
        stored.files.truncate(segment(3), left)
        first = 3 + left // len(make_batch(b"0"))
        assert f"records {first} to 5 cannot be read" in self.is_damaged(stored)
        assert sorted(self.recover(stored)) == sorted({*range(7)} - {*range(first, 6)})

    def test_transactions_whose_end_may_be_lost_are_reported(self) -> None:
        stored = Stored(per_segment=100)
        for producer_id in (7, 8):
            stored.append(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
        for producer_id in (7, 8):
            stored.log.append_marker(producer_id, 0, committed=True, leader_epoch=0, now_ms=NOW_MS)
        stored.commit()
        stored.keeper.synced_to = 4
        content = bytearray(stored.files.read(segment(0), 0, 1000))
        content[-1] ^= 1
        stored.files.truncate(segment(0), 0)
        stored.files.append(segment(0), [content])
        message = self.is_damaged(stored)
        assert f"{DIRECTORY}: records 3 to 3 cannot be read" in message
        assert f"{DIRECTORY}: whether records 1 to 2 of producer 8 were committed cannot be read" in message
        assert "producer 7" not in message

    def test_a_reader_skips_lost_records(self, stored: Stored) -> None:
        stored.files.truncate(segment(3), 0)
        self.recover(stored)
        (empty,) = stored.log.read(4, 0)
        assert (RecordBatch(empty).count, RecordBatch(empty).base_offset, RecordBatch(empty).last_offset) == (0, 3, 5)
        assert list(RecordBatch(empty).records()) == []

    def test_unsynced_bytes_are_cut_off_and_kept(self, stored: Stored) -> None:
        stored.append(b"7")
        stored.append(b"8")
        stored.commit()
        whole = stored.files.read(segment(6), 0, 1000)
        size = len(make_batch(b"0"))
        stored.files.truncate(segment(6), 2 * size - 1)
        stored.files.append(segment(6), [b"?", whole[2 * size :]])
        stored.restart()
        assert stored.log.log_end_offset == 7
        assert stored.files.size(f"{segment(6)}.{size}.torn") == 2 * size

    def test_files_that_may_not_be_synced_are_synced_first(self, stored: Stored) -> None:
        stored.append(b"7")
        stored.commit()
        stored.restart()
        assert stored.keeper.unsynced == [segment(6)]

    def test_surplus_files_are_set_aside(self, stored: Stored) -> None:
        stored.files.append(segment(4), [b"whatever"])
        stored.restart()
        assert len(stored.values()) == 7
        assert f"{segment(4)}.damaged" in [f"{DIRECTORY}/{name}" for name in stored.files.names(DIRECTORY)]

    @pytest.mark.parametrize("at", [3, 60, 65])
    def test_a_batch_that_changes_later_is_not_given_to_readers(
        self, stored: Stored, at: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        content = bytearray(stored.files.read(segment(0), 0, 1000))
        content[at] ^= 0x40
        stored.files.truncate(segment(0), 0)
        stored.files.append(segment(0), [content])
        for _ in range(2):
            with pytest.raises(CorruptRecordException, match=r"--recover|CRC"):
                stored.log.read(0, 1000)
        assert len(caplog.records) <= 1
        assert len(stored.log.read(3, 1000)) == 4

    @pytest.mark.parametrize("at", [3, 60])
    def test_batches_before_a_damaged_one_are_read(self, stored: Stored, at: int) -> None:
        content = bytearray(stored.files.read(segment(3), 0, 1000))
        content[len(make_batch(b"0")) + at] ^= 0x40
        stored.files.truncate(segment(3), 0)
        stored.files.append(segment(3), [content])
        assert list(map(bytes, stored.log.read(1, 1000))) == list(map(bytes, stored.log.read(1, 250)))
        with pytest.raises(CorruptRecordException):
            stored.log.read(4, 1000)
        assert len(stored.log.read(5, 1000)) == 2


def test_a_batch_that_cannot_be_kept_changes_nothing() -> None:
    stored = Stored()
    stored.append(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    stored.keeper.failed = True
    with pytest.raises(KafkaStorageException):
        stored.append(b"b", producer_id=7, producer_epoch=0, base_sequence=1)
    assert stored.log.log_end_offset == 1
    assert stored.log.active_producers()[0].last_sequence == 0


def test_a_retry_is_known_though_its_records_are_deleted() -> None:
    stored = Stored()
    sent = [
        RecordBatch(make_batch(b"%d" % number, producer_id=7, producer_epoch=0, base_sequence=number))
        for number in range(8)
    ]
    for batch in sent[:6]:
        stored.log.append(batch, leader_epoch=0, now_ms=NOW_MS)
    stored.commit()
    stored.log.delete_records(6)
    stored.log.append(sent[6], leader_epoch=0, now_ms=NOW_MS)
    stored.commit()
    before = stored.log.producer_state.snapshot()
    stored.restart()
    assert stored.log.producer_state.snapshot() == before
    assert stored.log.append(sent[5], leader_epoch=0, now_ms=NOW_MS).duplicate
    assert not stored.log.append(sent[7], leader_epoch=0, now_ms=NOW_MS).duplicate


def test_producers_are_stored_when_the_log_begins_behind_a_segment_and_not_before() -> None:
    stored = Stored()
    for number in range(8):
        stored.append(b"%d" % number, producer_id=number, producer_epoch=0, base_sequence=0)
    stored.commit()
    snapshots = []
    for before in range(1, 9):
        stored.log.delete_records(before)
        stored.commit()
        snapshots.append(stored.keeper.snapshots)
    assert snapshots == [0, 0, 1, 1, 1, 2, 2, 2]
    for number in (8, 9):  # the first one fits into the last segment
        stored.append(b"%d" % number, producer_id=number, producer_epoch=0, base_sequence=0)
    assert stored.keeper.snapshots == 2
    stored.log.delete_records(9)
    assert stored.keeper.snapshots == 3


@pytest.mark.parametrize("clean", [False, True])
def test_producers_are_stored_when_everything_was_deleted_and_a_segment_follows(clean: bool) -> None:
    stored = Stored()
    sent = [RecordBatch(make_batch(b"x", producer_id=7, producer_epoch=0, base_sequence=number)) for number in range(4)]
    for batch in sent[:3]:
        stored.log.append(batch, leader_epoch=0, now_ms=NOW_MS)
    stored.log.delete_records(3)
    stored.commit()
    assert stored.keeper.snapshots == 0
    stored.restart(stored.log.checkpoint() if clean else None)
    other = RecordBatch(make_batch(b"y", producer_id=8, producer_epoch=0, base_sequence=0))
    stored.log.append(other, leader_epoch=0, now_ms=NOW_MS)
    assert stored.keeper.snapshots == 1
    stored.commit()
    stored.commit()
    assert stored.files.names(DIRECTORY) == [f"{3:020}.log"]
    stored.restart()
    for batch in (*sent[:3], other):
        assert stored.log.append(batch, leader_epoch=0, now_ms=NOW_MS).duplicate
    assert not stored.log.append(sent[3], leader_epoch=0, now_ms=NOW_MS).duplicate


@pytest.mark.parametrize("seed", range(30))
def test_producers_are_the_same_after_a_restart_whatever_was_deleted(seed: int) -> None:
    random, stored = Random(seed), Stored()
    sequences = dict.fromkeys(range(3), 0)
    for _ in range(60):
        step = random.randrange(10)
        if step < 6:
            producer_id = random.choice(list(sequences))
            header = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequences[producer_id]}
            stored.append(b"x", **header)
            sequences[producer_id] += 1
        elif step < 8:
            stored.log.delete_records(random.randint(stored.log.log_start_offset, stored.log.log_end_offset))
        else:
            before = stored.log.producer_state.snapshot()
            stored.commit()
            stored.restart()
            assert sorted(stored.log.producer_state.snapshot()) == sorted(before)


def test_producers_of_a_log_that_begins_anew_are_stored() -> None:
    stored = Stored()
    batch = RecordBatch(make_batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0))
    stored.log.append(batch, leader_epoch=0, now_ms=NOW_MS)
    stored.commit()
    stored.keeper.start = 10
    for _ in range(2):
        stored.restart()
        assert stored.log.producer_state.find_duplicate(7, 0, 0, 0) is not None
    assert stored.files.names(DIRECTORY) == []


def test_a_batch_that_was_never_written_is_no_duplicate_though_it_was_remembered() -> None:
    stored = Stored()
    batch = RecordBatch(make_batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0))
    other = RecordBatch(make_batch(b"a", producer_id=8, producer_epoch=0, base_sequence=0))
    stored.log.append(other, leader_epoch=0, now_ms=NOW_MS)
    stored.commit()
    stored.log.append(batch, leader_epoch=0, now_ms=NOW_MS)
    stored.log.delete_records(1)
    stored.restart()
    assert stored.log.log_end_offset == 1
    assert stored.log.append(other, leader_epoch=0, now_ms=NOW_MS).duplicate
    assert not stored.log.append(batch, leader_epoch=0, now_ms=NOW_MS).duplicate


def test_a_log_of_which_nothing_is_left_begins_where_it_was_deleted_to() -> None:
    stored = Stored()
    stored.files.remove(DIRECTORY)
    stored.keeper.start = 3
    stored.restart()
    assert (stored.log.log_start_offset, stored.log.log_end_offset) == (3, 3)
