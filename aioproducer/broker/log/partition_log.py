"""The log of one partition."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.appended_batch import set_base_offset, set_log_append_time, set_max_timestamp
from aioproducer.broker.log.batch_store import Batches, MemoryBatches
from aioproducer.broker.log.leader_epochs import LeaderEpochs
from aioproducer.broker.log.log_checkpoint import LogCheckpoint
from aioproducer.broker.log.log_index import LogIndex
from aioproducer.broker.log.log_validator import NO_TIMESTAMP, Scan, validate
from aioproducer.broker.log.producer_state import NO_PRODUCER_ID, BatchMetadata, ProducerSnapshot, ProducerStateManager
from aioproducer.broker.log.timestamp_search import TimestampAndOffset, TimestampSearch
from aioproducer.broker.log.transaction_index import AbortedTransaction, TransactionIndex
from aioproducer.broker.log.transaction_marker import COORDINATOR_EPOCH, end_transaction_marker, is_commit
from aioproducer.errors import CorruptRecordException, InvalidTxnStateException, OffsetOutOfRangeException
from aioproducer.protocol.primitives import Buffer
from aioproducer.records.record import Record
from aioproducer.records.record_batch import RecordBatch

NO_OFFSET = -1
_OFFSET = Struct(">q")


class LogAppendInfo(NamedTuple):
    """The result of an append. ``log_append_time`` (ms) is -1 unless the broker stamped the records, or the batch is a
    duplicate: then it is the largest timestamp of the first one."""

    first_offset: int
    last_offset: int
    log_append_time: int
    duplicate: bool


class ActiveProducer(NamedTuple):
    """The state of a producer in this partition. ``last_timestamp`` is in milliseconds. It is -1 for none; so are the
    epoch of the coordinator that ended the last transaction, and the first offset of the current transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


class PartitionLog:
    """Batches in order of their offsets, as they will be fetched, and the state of the producers that wrote them.

    ``batches`` stores them; by default it keeps them in memory.

    All replicas share the log, so an appended record is replicated at once. If tests make replicas lag
    (``Partition.held``), ``replicated_to`` is the offset up to which records are replicated.
    """

    def __init__(self, name: str, config: TopicConfig, batches: Batches | None = None) -> None:
        self.name = name
        self.config = config
        self._retain = config.producer_state_batches_to_retain
        self.producer_state = ProducerStateManager()
        self._transactions = TransactionIndex()
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.replicated_to: int | None = None
        self.size_in_bytes = 0
        self._batches: Batches = MemoryBatches() if batches is None else batches
        self._batches.use(self.producer_state)
        self._is_stored = batches is not None
        self._index = LogIndex()  # has an entry for each batch
        self.leader_epochs = LeaderEpochs()

    def configure(self, config: TopicConfig, retain: int) -> None:
        """Applies a new config, and remembers no more than the last ``retain`` batches of each producer.

        A smaller ``retention.bytes`` takes effect with the next append.
        """
        self.config = config
        self._batches.configure(config)
        if retain < self._retain:
            self.producer_state.retain(retain)
        self._retain = retain

    @property
    def high_watermark(self) -> int:
        """The offset up to which consumers may read."""
        return self.log_end_offset if self.replicated_to is None else self.replicated_to

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which all transactions have ended, and ``read_committed`` consumers may read."""
        unstable = self._transactions.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def append(
        self,
        batch: RecordBatch,
        *,
        leader_epoch: int,
        now_ms: int,
        remembered: int | None = None,
        scanned: Scan | None = None,
    ) -> LogAppendInfo:
        """Appends a batch as a client sent it, or recognises a duplicate.

        The batch is a duplicate if it is one of the last ``remembered`` batches of its producer (None: as many as the
        topic's config says). Raises an exception with the code that Kafka answers, before anything changes.
        ``scanned`` is the result of an earlier scan.
        """
        found = validate(batch, self.config, now_ms, scanned)
        max_timestamp = found.max_timestamp
        if batch.producer_id > NO_PRODUCER_ID:
            identity = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
            within = self.config.producer_state_batches_to_retain if remembered is None else remembered
            kept = self.producer_state.find_duplicate(*identity, batch.last_sequence, within)
            if kept is not None:
                return LogAppendInfo(kept.first_offset, kept.last_offset, kept.timestamp, duplicate=True)
            self.producer_state.validate(*identity)
            if not batch.is_transactional and self._transactions.first_offset(batch.producer_id) is not None:
                raise InvalidTxnStateException(
                    f"producer {batch.producer_id} has a transaction in {self.name}, and the batch is no part of it"
                )
        stored = bytearray(batch.data) if found.recompressed is None else found.recompressed
        log_append_time = NO_TIMESTAMP
        if self.config.message_timestamp_type == "LogAppendTime":
            max_timestamp = log_append_time = now_ms
            set_log_append_time(stored, now_ms)
        elif max_timestamp != batch.max_timestamp:
            set_max_timestamp(stored, max_timestamp)
        first_offset = self._store(stored, batch.last_offset_delta, max_timestamp, leader_epoch)
        last_offset = first_offset + batch.last_offset_delta
        self._remember(batch, first_offset, last_offset, max_timestamp)
        if 0 <= self.config.retention_bytes < self.size_in_bytes:
            self._delete_old_batches()
        return LogAppendInfo(first_offset, last_offset, log_append_time, duplicate=False)

    def append_marker(
        self, producer_id: int, producer_epoch: int, *, committed: bool, leader_epoch: int, now_ms: int
    ) -> int:
        """Ends a producer's transaction in this partition; returns the offset of the marker."""
        marker = bytearray(end_transaction_marker(producer_id, producer_epoch, committed=committed, now_ms=now_ms))
        offset = self._store(marker, 0, now_ms, leader_epoch)
        self._end_transaction(producer_id, producer_epoch, offset, committed=committed)
        return offset

    def _store(self, batch: bytearray, last_offset_delta: int, max_timestamp: int, leader_epoch: int) -> int:
        """Stores a batch at the end of the log, and returns its first offset."""
        first_offset = self.log_end_offset
        set_base_offset(batch, first_offset, leader_epoch)
        self._batches.append(batch)
        self._grow(first_offset, len(batch), last_offset_delta, max_timestamp, leader_epoch)
        return first_offset

    def _grow(self, first_offset: int, size: int, last_offset_delta: int, max_timestamp: int, epoch: int) -> None:
        if epoch > self.leader_epochs.latest:
            self.leader_epochs.begin(epoch, first_offset)
        self._index.append(first_offset, max_timestamp, size)
        self.size_in_bytes += size
        self.log_end_offset = first_offset + last_offset_delta + 1

    def _remember(self, batch: RecordBatch, first_offset: int, last_offset: int, max_timestamp: int) -> None:
        if batch.is_transactional:
            self._transactions.wrote(batch.producer_id, first_offset)
        if batch.producer_id > NO_PRODUCER_ID:
            appended = BatchMetadata(batch.last_sequence, last_offset, batch.last_offset_delta, max_timestamp)
            # An older node that leads now looks at fewer batches, but the next leader may look at all of these.
            self.producer_state.update(batch.producer_id, batch.producer_epoch, appended, self._retain)

    def _end_transaction(self, producer_id: int, producer_epoch: int, offset: int, *, committed: bool) -> None:
        self.producer_state.transaction_ended(producer_id, producer_epoch, COORDINATOR_EPOCH)
        self._transactions.ended(producer_id, offset, committed=committed)

    def checkpoint(self) -> LogCheckpoint:
        """The state of the log, with which :meth:`recover` need not read the batches if nothing changes until then."""
        segments, deleted = self._batches.segments()
        return LogCheckpoint(
            segments,
            deleted,
            self.log_start_offset,
            self.log_end_offset,
            list(self._index.base_offsets),
            list(self._index.max_timestamps),
            self.producer_state.snapshot(),
            self._transactions.under_way(),
            self._transactions.all_aborted(),
            self.leader_epochs.entries(),
        )

    def recover(
        self,
        log_start_offset: int,
        producers: Iterable[ProducerSnapshot] = (),
        checkpoint: LogCheckpoint | None = None,
    ) -> None:
        """Restores the log of an earlier run, before any other call.

        If the files agree with the ``checkpoint``, no batch is read. Otherwise the producer state is rebuilt from the
        batches and, for deleted batches, from ``producers``, the state when records were last deleted.
        """
        self.replicated_to = None  # every record on disk counts as replicated, whichever replicas are in sync now
        if checkpoint is not None and self._batches.restore(checkpoint.segments, checkpoint.deleted):
            self._restore(checkpoint)
        else:
            self._read_all(log_start_offset, producers)

    def _restore(self, checkpoint: LogCheckpoint) -> None:
        self.log_start_offset, self.log_end_offset = checkpoint.log_start_offset, checkpoint.log_end_offset
        sizes = list(map(self._batches.size, range(len(self._batches))))
        self._index = LogIndex(checkpoint.base_offsets, checkpoint.max_timestamps, sizes)
        self.size_in_bytes = sum(sizes)
        self._transactions.restore(checkpoint.open_transactions, checkpoint.aborted_transactions)
        self.leader_epochs = LeaderEpochs(checkpoint.leader_epochs)
        self.producer_state.restore(checkpoint.producers, self.log_end_offset, self._retain)

    def _read_all(self, log_start_offset: int, producers: Iterable[ProducerSnapshot]) -> None:
        for batch in self._batches.load(log_start_offset):
            if not self._index:
                self.log_start_offset = batch.base_offset
            self._grow(
                batch.base_offset,
                batch.size_in_bytes,
                batch.last_offset_delta,
                batch.max_timestamp,
                batch.partition_leader_epoch,
            )
            if batch.is_control:
                committed = is_commit(batch)
                self._end_transaction(batch.producer_id, batch.producer_epoch, batch.base_offset, committed=committed)
            else:
                self._remember(batch, batch.base_offset, batch.last_offset, batch.max_timestamp)
        is_lost = log_start_offset > self.log_end_offset
        if is_lost:
            # The deletion is known, but the rest of the log was lost.
            self._batches.reset()
            self._index = LogIndex()
            self.leader_epochs = LeaderEpochs()
            self.size_in_bytes = 0
            self.log_start_offset = self.log_end_offset = log_start_offset
        self.producer_state.restore(producers, self.log_end_offset, self._retain)
        if is_lost or log_start_offset < self.log_start_offset:
            # Offsets before the start are lost for good.
            self._batches.delete(0, self.log_start_offset)
        elif log_start_offset > self.log_start_offset:
            self.delete_records(log_start_offset)

    def transaction_start_offset(self, producer_id: int) -> int:
        """The first offset of a producer's open transaction in this partition; -1 if there is none."""
        began = self._transactions.first_offset(producer_id)
        return NO_OFFSET if began is None else began

    @property
    def open_transactions(self) -> set[int]:
        """The ids of producers with an open transaction in this partition."""
        return self._transactions.producers()

    # reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        min_one_batch: bool = True,
        committed: bool = False,
        at_once: int = sys.maxsize,
    ) -> Sequence[Buffer]:
        """Whole batches from the one that has ``offset`` up to the high watermark, together at most ``max_bytes``, and
        no more as soon as they have the bytes of ``at_once``.

        With ``min_one_batch`` the first batch is returned even if it is larger. With ``committed`` the read ends at the
        last stable offset. Raises :class:`OffsetOutOfRangeException`.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise self._out_of_range(offset)
        if offset == self.log_end_offset:
            return []
        batches = self._batches
        end = len(batches)
        if committed or self.replicated_to is not None:
            end = self._index.count_before(self.last_stable_offset if committed else self.high_watermark)
        first = last = self._index.place_of(offset)
        while last < end and at_once > 0:
            size = batches.size(last)
            max_bytes -= size
            at_once -= size
            if max_bytes < 0 and (last > first or not min_one_batch):
                break
            last += 1
        return self._read(first, last)

    def _read(self, first: int, last: int) -> Sequence[Buffer]:
        """The batches of these places, up to the first that is damaged. Raises :class:`CorruptRecordException` if the
        first one is."""
        found = self._batches[first:last]
        if not self._is_stored:
            return found
        # The CRC does not cover the offset.
        for at, batch in enumerate(found):
            (offset,) = _OFFSET.unpack_from(batch)
            if offset != self._index.base_offsets[first + at]:
                if at:
                    return found[:at]
                raise CorruptRecordException(
                    f"{self.name}: a batch has offset {offset} instead of "
                    f"{self._index.base_offsets[first]}; a start with --recover corrects it"
                )
        return found

    def readable(self, fetch_offset: int, counted_to: int, *, committed: bool = False) -> tuple[int, int]:
        """How many bytes a read from ``fetch_offset`` can return beyond the offset ``counted_to``, and where they end.

        The cost does not depend on the number of batches. Raises :class:`OffsetOutOfRangeException`.
        """
        if not self.log_start_offset <= fetch_offset <= self.log_end_offset:
            raise self._out_of_range(fetch_offset)
        end = self.last_stable_offset if committed else self.high_watermark
        if counted_to >= end:
            return 0, counted_to
        return self._index.size(self._index.place_of(counted_to), self._index.count_before(end)), end

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from offset ``start`` up to ``end``, which is not included."""
        return self._transactions.aborted(start, end)

    def active_producers(self) -> list[ActiveProducer]:
        """The idempotent producers whose batches the partition remembers."""
        return list(self.each_active_producer())

    def each_active_producer(self) -> Iterator[ActiveProducer]:
        """Yields :meth:`active_producers` one by one, because there may be many."""
        for producer_id, entry in tuple(self.producer_state.entries().items()):
            last_timestamp = entry.batches[-1].timestamp if entry.batches else NO_TIMESTAMP
            yield ActiveProducer(
                producer_id,
                entry.producer_epoch,
                entry.last_sequence,
                last_timestamp,
                entry.coordinator_epoch,
                self.transaction_start_offset(producer_id),
            )

    def batches(self) -> Iterator[RecordBatch]:
        """Every batch, for tests: views into the log."""
        return (RecordBatch(batch) for batch in self._batches)

    def records(self) -> Iterator[Record]:
        """Every record without markers, for tests. Raises :class:`CorruptRecordException` at an unreadable batch."""
        for batch in self.batches():
            if not batch.is_control:
                yield from batch.records()

    # searching

    def search_timestamp(self, timestamp: int) -> TimestampSearch | None:
        """A search for the first record with this timestamp (ms) or a later one; None if there is none."""
        place = self._index.place_of_timestamp(timestamp)
        if place == len(self._batches):
            return None
        (batch,) = self._read(place, place + 1)
        return TimestampSearch(RecordBatch(batch), timestamp, self.log_start_offset)

    def search_max_timestamp(self) -> TimestampSearch | None:
        """A search for the first record with the largest timestamp; None if the log has no timestamps."""
        return self.search_timestamp(self._index.max_timestamps[-1]) if self._index else None

    def find_by_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record with this timestamp (ms) or a later one."""
        search = self.search_timestamp(timestamp)
        return None if search is None else search.run()

    def find_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp."""
        search = self.search_max_timestamp()
        return None if search is None else search.run()

    def leader_epoch_at(self, offset: int) -> int:
        """The leader epoch of the batch that has ``offset``. Raises :class:`OffsetOutOfRangeException`."""
        if not self.log_start_offset <= offset < self.log_end_offset:
            raise self._out_of_range(offset)
        return self.leader_epochs.at(offset)

    # deleting

    def delete_records(self, before_offset: int) -> None:
        """Moves the log start offset, and drops the batches that lie wholly before it. The producer state stays.

        Does nothing if the records are deleted already.
        """
        if not 0 <= before_offset <= self.high_watermark:
            raise self._out_of_range(before_offset)
        if before_offset < self.log_start_offset:
            return
        self.log_start_offset = before_offset
        if before_offset == self.log_end_offset:
            self._drop(len(self._batches))
        else:
            self._drop(self._index.place_of(before_offset))
        self._transactions.delete_before(before_offset)

    def _delete_old_batches(self) -> None:
        # Deletes down to 7/8 of the limit, so that not every append moves the lists.
        keep = self.config.retention_bytes - self.config.retention_bytes // 8
        count, left = 0, self.size_in_bytes
        base_offsets, replicated = self._index.base_offsets, self.high_watermark
        while left > keep and count < len(self._batches) - 1 and base_offsets[count + 1] <= replicated:
            left -= self._batches.size(count)
            count += 1
        self.log_start_offset = max(self.log_start_offset, base_offsets[count])
        self._drop(count)
        self._transactions.delete_before(self.log_start_offset)

    def _out_of_range(self, offset: int) -> OffsetOutOfRangeException:
        return OffsetOutOfRangeException(
            f"offset {offset} of {self.name} is not within {self.log_start_offset} and {self.log_end_offset}"
        )

    def _drop(self, count: int) -> None:
        self.size_in_bytes -= self._index.size(0, count)
        self._batches.delete(count, self.log_start_offset)
        self.leader_epochs.delete_before(self.log_start_offset)
        self._index.delete(count)
