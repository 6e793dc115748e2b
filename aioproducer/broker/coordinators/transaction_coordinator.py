"""Transactions: the producer of each transactional id, the partitions and groups of its transaction, and its end.

Follows Kafka's ``TransactionCoordinator`` for both of its protocols. In the first one (v1) a producer adds each
partition before it writes to it, and keeps its epoch from one transaction to the next. In the second one (KIP-890, v2)
a write adds the partition, and the end of a transaction bumps the epoch, so that no late record of one transaction gets
into the next.

Simplifications: markers are written at once, in the same step as the decision, so ``CONCURRENT_TRANSACTIONS`` is only
the answer to an InitProducerId that had to abort a transaction; all nodes know a decision at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator

from aioproducer.broker.coordinators.expiry import is_expired
from aioproducer.broker.coordinators.group_offsets import GroupOffsets
from aioproducer.broker.log.producer_state import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from aioproducer.broker.state.cluster_journal import IN_MEMORY, ClusterJournal, Decision
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.transaction_metadata import TransactionMetadata, TransactionState
from aioproducer.errors import (
    ConcurrentTransactionsException,
    InvalidPidMappingException,
    InvalidRequestException,
    InvalidTxnStateException,
    InvalidTxnTimeoutException,
    KafkaStorageException,
    ProducerFencedException,
)
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)

Identity = tuple[int, int]
"""A producer id and epoch."""

NOBODY: Identity = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class TransactionCoordinator:
    """All transactional ids of the cluster. Methods raise the exception whose code Kafka answers."""

    def __init__(
        self, state: ClusterState, offsets: GroupOffsets, clock: Clock, journal: ClusterJournal = IN_MEMORY
    ) -> None:
        self._journal = journal
        self._state = state
        self._clock = clock
        self.offsets = offsets
        self._transactions: dict[str, TransactionMetadata] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def transaction(self, transactional_id: str) -> TransactionMetadata | None:
        return self._transactions.get(transactional_id)

    def transactions(self) -> list[TransactionMetadata]:
        """All known transactional ids."""
        return list(self._transactions.values())

    def close(self) -> None:
        """Cancels the time-outs of all transactions."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def init_producer_id(self, transactional_id: str, timeout_ms: int, expected: Identity) -> Identity:
        """The id and epoch to continue with; the previous owner of the transactional id is fenced.

        An open transaction is aborted under the next epoch, which no producer gets, and
        :class:`ConcurrentTransactionsException` is raised: the producer retries, and gets the epoch after that.
        ``expected`` is the producer's current identity (KIP-360), or ``(-1, -1)``. As in Kafka, its epoch is checked
        only if no transaction is open.
        """
        if not transactional_id:
            raise InvalidRequestException("the transactional id is empty")
        longest = self._state.config.transaction_max_timeout_ms
        if not 0 < timeout_ms <= longest:
            raise InvalidTxnTimeoutException(
                f"transaction.timeout.ms is {timeout_ms}; it must be from 1 to transaction.max.timeout.ms={longest}"
            )
        metadata = self._transactions.get(transactional_id)
        if metadata is None:
            metadata = TransactionMetadata(transactional_id, self._state.allocate_producer_id(), timeout_ms)
            self._transactions[transactional_id] = metadata
        is_checked = expected[0] != NO_PRODUCER_ID and metadata.producer_epoch != NO_PRODUCER_EPOCH
        if is_checked and not metadata.had_id(expected):
            raise self._moved_on(metadata, expected)
        if metadata.state is TransactionState.ONGOING:
            self._abort_fenced(metadata)
            raise ConcurrentTransactionsException(f"the open transaction of {transactional_id!r} was aborted first")
        if not is_checked or expected == metadata.identity:
            self._bump(metadata)
            if expected[0] == NO_PRODUCER_ID:
                metadata.previous = NOBODY
        elif expected != metadata.previous:  # that one means a retry after a lost answer
            raise self._moved_on(metadata, expected)
        metadata.timeout_ms = timeout_ms
        metadata.become(TransactionState.EMPTY)
        metadata.started_ms = -1
        self._changed(metadata)
        return metadata.identity

    def add_partitions(self, transactional_id: str, identity: Identity, partitions: Iterable[tuple[str, int]]) -> None:
        """Adds partitions to the transaction; begins one if there is none."""
        metadata = self._of(transactional_id, identity)
        new = [partition for partition in partitions if partition not in metadata.partitions]
        if self._begin(metadata) or new:
            metadata.partitions.update(dict.fromkeys(new))
            self._changed(metadata)

    def add_group(self, transactional_id: str, identity: Identity, group: str) -> None:
        """Adds a group to the transaction; begins one if there is none."""
        metadata = self._of(transactional_id, identity)
        if self._begin(metadata) or group not in metadata.groups:
            metadata.groups[group] = None
            self._changed(metadata)

    def check_partition(self, transactional_id: str, identity: Identity, partition: tuple[str, int]) -> None:
        """Raises unless the partition was added to the open transaction."""
        metadata = self._of(transactional_id, identity)
        if metadata.state is not TransactionState.ONGOING or partition not in metadata.partitions:
            raise InvalidTxnStateException(
                f"{partition[0]}-{partition[1]} was not added to the transaction of {transactional_id!r}"
            )

    def check_group(self, transactional_id: str, identity: Identity, group: str) -> None:
        """Raises unless the group was added to the open transaction."""
        metadata = self._of(transactional_id, identity)
        if metadata.state is not TransactionState.ONGOING or group not in metadata.groups:
            raise InvalidTxnStateException(f"group {group!r} was not added to the transaction of {transactional_id!r}")

    def end(self, transactional_id: str, identity: Identity, *, committed: bool, bump: bool) -> Identity:
        """Commits or aborts; returns the id and epoch to continue with. ``bump``: the second protocol (KIP-890)."""
        metadata = self._known(transactional_id)
        wanted = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
        if bump and identity == metadata.previous:
            if metadata.state is wanted:
                return metadata.identity  # a retry after a lost answer
            if metadata.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
                raise self._cannot_end(metadata, committed)
        self._check(metadata, identity)
        if metadata.state is TransactionState.ONGOING:
            if bump:
                self._bump(metadata)
            self._write_markers(metadata, (identity[0], identity[1] + bump), committed)
            metadata.become(wanted)
            self._changed(metadata)
            return metadata.identity
        if bump and not committed:
            self._bump(metadata)  # nothing was written, and late records must not be accepted
            metadata.become(TransactionState.COMPLETE_ABORT)
            metadata.started_ms = self._clock.time_ms()
            self._changed(metadata)
            return metadata.identity
        if not bump and metadata.state is wanted:
            return metadata.identity
        raise self._cannot_end(metadata, committed)

    def expire(self) -> Iterator[None]:
        """Forgets transactional ids unused for ``transactional.id.expiration.ms``; yields after each."""
        expiration_ms = self._state.config.transactional_id_expiration_ms
        for transactional_id in list(self._transactions):
            metadata = self._transactions.get(transactional_id)
            if metadata is not None and is_expired(metadata, expiration_ms, self._clock.time_ms()):
                self._journal.transaction_forgotten(transactional_id)
                del self._transactions[transactional_id]
            yield

    def restore(self, metadata: TransactionMetadata) -> None:
        """Restores a transactional id from before a restart; see :meth:`resume`."""
        self._transactions[metadata.transactional_id] = metadata

    def resume(self) -> None:
        """Sets the time-outs of open transactions after a restart, to the time that they have left."""
        for metadata in self._transactions.values():
            if metadata.state is TransactionState.ONGOING:
                self._start_timer(metadata, metadata.started_ms + metadata.timeout_ms - self._clock.time_ms())

    def _begin(self, metadata: TransactionMetadata) -> bool:
        """Begins a transaction unless one is open. Returns whether it did."""
        if metadata.state is TransactionState.ONGOING:
            return False
        metadata.become(TransactionState.ONGOING)
        metadata.started_ms = self._clock.time_ms()
        self._start_timer(metadata, metadata.timeout_ms)
        return True

    def _start_timer(self, metadata: TransactionMetadata, left_ms: int) -> None:
        self._timers[metadata.transactional_id] = asyncio.get_running_loop().call_later(
            left_ms / 1000, self._timed_out, metadata
        )

    def _timed_out(self, metadata: TransactionMetadata) -> None:
        log.info(
            "transaction of %r has not ended within %d ms: aborted", metadata.transactional_id, metadata.timeout_ms
        )
        try:
            self._abort_fenced(metadata)
        except KafkaStorageException as error:
            log.warning("the transaction of %r stays open: %s", metadata.transactional_id, error)

    def _abort_fenced(self, metadata: TransactionMetadata) -> None:
        """Aborts the open transaction and fences its producer. In the second protocol that producer may still abort:
        this is answered like a retry, and the producer continues."""
        marked = metadata.producer_id, metadata.producer_epoch + 1
        self._bump(metadata)
        self._write_markers(metadata, marked, False)
        metadata.become(TransactionState.COMPLETE_ABORT)
        self._changed(metadata)

    def _changed(self, metadata: TransactionMetadata) -> None:
        metadata.changed_ms = self._clock.time_ms()
        self._journal.transaction_changed(metadata)

    def _bump(self, metadata: TransactionMetadata) -> None:
        metadata.next_epoch(self._state.allocate_producer_id() if metadata.is_exhausted else None)

    def _write_markers(self, metadata: TransactionMetadata, marked: Identity, committed: bool) -> None:
        timer = self._timers.pop(metadata.transactional_id, None)
        if timer is not None:
            timer.cancel()
        producer_id, producer_epoch = marked
        now_ms = self._clock.time_ms()
        markers = []
        for name, index in metadata.partitions:
            partition = self._state.find_partition(name, index)
            if partition is None:
                continue  # deleted meanwhile
            offset = partition.log.append_marker(
                producer_id,
                producer_epoch,
                committed=committed,
                leader_epoch=partition.leader_epoch,
                now_ms=now_ms,
            )
            markers.append((self._state.topics[name].id, index, offset))
            partition.notify()
        self._journal.transaction_decided(Decision(producer_id, producer_epoch, committed, now_ms, markers))
        self.offsets.transaction_ended(producer_id, committed=committed)
        metadata.clear()

    @staticmethod
    def _moved_on(metadata: TransactionMetadata, expected: Identity) -> ProducerFencedException:
        return ProducerFencedException(
            f"{metadata.transactional_id!r} has moved on from producer id and epoch {expected} to {metadata.identity}"
        )

    @staticmethod
    def _cannot_end(metadata: TransactionMetadata, committed: bool) -> InvalidTxnStateException:
        end = "commit" if committed else "abort"
        return InvalidTxnStateException(
            f"{metadata.transactional_id!r} cannot {end}: its state is {metadata.state.value}"
        )

    def _of(self, transactional_id: str, identity: Identity) -> TransactionMetadata:
        metadata = self._known(transactional_id)
        self._check(metadata, identity)
        return metadata

    def _known(self, transactional_id: str) -> TransactionMetadata:
        if not transactional_id:
            raise InvalidRequestException("the transactional id is empty")
        metadata = self._transactions.get(transactional_id)
        if metadata is None:
            raise InvalidPidMappingException(
                f"there is no producer id for {transactional_id!r}: InitProducerId comes first"
            )
        return metadata

    def _check(self, metadata: TransactionMetadata, identity: Identity) -> None:
        if identity[0] != metadata.producer_id:
            raise InvalidPidMappingException(
                f"{metadata.transactional_id!r} has producer id {metadata.producer_id}, not {identity[0]}"
            )
        if identity[1] != metadata.producer_epoch:
            raise ProducerFencedException(
                f"{metadata.transactional_id!r} has producer epoch {metadata.producer_epoch}, not {identity[1]}"
            )
