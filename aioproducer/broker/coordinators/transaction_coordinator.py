"""Transactions: the producer of each transactional id, the partitions and groups of its transaction, and its end.

Follows Kafka's ``TransactionCoordinator`` for both of its protocols. In the first one (v1) a producer adds each
partition before it writes to it, and keeps its epoch from one transaction to the next. In the second one (KIP-890, v2)
a write adds the partition, and the end of a transaction bumps the epoch, so that no late record of one transaction gets
into the next.

Markers are written in the same step as the decision if they are few; further ones in slices, and until then requests
for the transactional id are answered with ``CONCURRENT_TRANSACTIONS``, as in Kafka.
Simplification: all nodes know a decision at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from aioproducer.broker.coordinators.expiry import is_expired
from aioproducer.broker.coordinators.group_offsets import GroupOffsets
from aioproducer.broker.coordinators.timers import Timers
from aioproducer.broker.log.producer_state import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.state.cluster_journal import IN_MEMORY, ClusterJournal, Decision
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.transaction_metadata import COMPLETE, NEVER_MS, TransactionMetadata, TransactionState
from aioproducer.errors import (
    ConcurrentTransactionsException,
    InvalidPidMappingException,
    InvalidRequestException,
    InvalidTxnStateException,
    InvalidTxnTimeoutException,
    KafkaStorageException,
    ProducerFencedException,
    TransactionalIdAuthorizationException,
)
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)

Identity = tuple[int, int]
"""A producer id and epoch."""

NOBODY: Identity = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class TransactionCoordinator:
    """All transactional ids of the cluster. Methods raise the exception whose code Kafka answers."""

    markers_at_once = 100
    """How many markers are written before other work may be done: some 0.5 ms."""

    few_markers = 50
    """So many are written with the decision in any case: a transaction in few partitions is completed at once."""

    def __init__(
        self,
        state: ClusterState,
        offsets: GroupOffsets,
        clock: Clock,
        slices: Slices,
        journal: ClusterJournal = IN_MEMORY,
    ) -> None:
        self._journal = journal
        self._state = state
        self._clock = clock
        self.offsets = offsets
        self._transactions: dict[str, TransactionMetadata] = {}
        self._timers: Timers[str] = Timers(slices)
        self._slices = slices
        self._closed = False

    def transaction(self, transactional_id: str) -> TransactionMetadata | None:
        return self._transactions.get(transactional_id)

    def transactions(self) -> list[TransactionMetadata]:
        """All known transactional ids."""
        return list(self._transactions.values())

    def close(self) -> None:
        """Cancels the time-outs of all transactions. Those that are prepared are finished after a restart."""
        self._timers.close()
        self._closed = True

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Identity,
        *,
        two_phases: bool = False,
        keep: bool = False,
    ) -> tuple[Identity, Identity]:
        """The id and epoch to continue with, and those of an open transaction that is kept; the previous owner of the
        transactional id is fenced.

        An open transaction is aborted under the next epoch, which no producer gets, and
        :class:`ConcurrentTransactionsException` is raised: the producer retries, and gets the epoch after that.
        ``expected`` is the producer's current identity (KIP-360), or ``(-1, -1)``. As in Kafka, its epoch is checked
        only if no transaction is open.

        With ``two_phases`` (KIP-939) transactions never time out, and with ``keep`` as well an open one is kept: the
        new owner can end it, and nothing else.
        """
        if not transactional_id:
            raise InvalidRequestException("the transactional id is empty")
        if two_phases and not self._state.config.transaction_two_phase_commit_enable:
            raise TransactionalIdAuthorizationException(
                "transaction.two.phase.commit.enable is false: no transaction takes part in a two-phase commit"
            )
        if keep and not two_phases:
            raise InvalidRequestException("only transactions that take part in a two-phase commit are kept")
        longest = self._state.config.transaction_max_timeout_ms
        if two_phases:
            timeout_ms = NEVER_MS
        elif not 0 < timeout_ms <= longest:
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
        self._check_finished(metadata)
        is_kept = keep and metadata.state is TransactionState.ONGOING
        if metadata.state is TransactionState.ONGOING and not is_kept:
            self._abort_fenced(metadata)
            raise ConcurrentTransactionsException(f"the open transaction of {transactional_id!r} was aborted first")
        if not is_checked or expected == metadata.identity:
            self._bump(metadata)
            if expected[0] == NO_PRODUCER_ID:
                metadata.previous = NOBODY
        elif expected != metadata.previous:  # that one means a retry after a lost answer
            raise self._moved_on(metadata, expected)
        metadata.timeout_ms = timeout_ms
        if is_kept:
            self._timers.stop(transactional_id)
        else:
            metadata.become(TransactionState.EMPTY)
            metadata.started_ms = -1
        self._changed(metadata)
        return metadata.identity, metadata.begun_as if is_kept else NOBODY

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
        is_retry = bump and identity == metadata.previous  # after a lost answer
        if is_retry and metadata.state is wanted:
            return metadata.identity
        if is_retry and metadata.state in COMPLETE.values():
            raise self._cannot_end(metadata, committed)
        if not (is_retry and metadata.is_prepared):
            self._check(metadata, identity)
        if metadata.is_prepared and COMPLETE[metadata.state] is not wanted:
            raise self._cannot_end(metadata, committed)
        self._check_finished(metadata)
        if metadata.state is TransactionState.ONGOING:
            if bump:
                self._bump(metadata)
            producer_id, producer_epoch = metadata.begun_as
            self._end(metadata, (producer_id, producer_epoch + bump), committed=committed)
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
        """Restores a transactional id from before a restart; see :meth:`finish_prepared` and :meth:`resume`."""
        self._transactions[metadata.transactional_id] = metadata

    def finish_prepared(self) -> None:
        """Writes the markers that a stop of the broker has left out, all at once."""
        for metadata in self._transactions.values():
            if metadata.is_prepared:
                for _ in self._finish(metadata, restarted=True):
                    pass

    def resume(self) -> None:
        """Sets the time-outs of open transactions after a restart, to the time that they have left: at most all of it,
        because the clock may have been set back meanwhile."""
        for metadata in self._transactions.values():
            if metadata.state is TransactionState.ONGOING:
                passed_ms = max(0, self._clock.time_ms() - metadata.started_ms)
                self._start_timer(metadata, metadata.timeout_ms - passed_ms)

    def _begin(self, metadata: TransactionMetadata) -> bool:
        """Begins a transaction unless one is open. Returns whether it did."""
        if metadata.state is TransactionState.ONGOING:
            return False
        metadata.begin(self._clock.time_ms())
        self._start_timer(metadata, metadata.timeout_ms)
        return True

    def _start_timer(self, metadata: TransactionMetadata, left_ms: int) -> None:
        if metadata.times_out:
            self._timers.start(metadata.transactional_id, left_ms, partial(self._timed_out, metadata))

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
        producer_id, producer_epoch = metadata.begun_as
        self._bump(metadata)
        self._end(metadata, (producer_id, producer_epoch + 1), committed=False)

    def _changed(self, metadata: TransactionMetadata) -> None:
        metadata.changed_ms = self._clock.time_ms()
        self._journal.transaction_changed(metadata)

    def _bump(self, metadata: TransactionMetadata) -> None:
        metadata.next_epoch(self._state.allocate_producer_id() if metadata.is_exhausted else None)

    def _end(self, metadata: TransactionMetadata, marked: Identity, *, committed: bool) -> None:
        """Decides the end of the open transaction, and finishes it: now, or in slices if it is large."""
        self._timers.stop(metadata.transactional_id)
        metadata.prepare(marked, committed=committed)
        steps = self._finish(metadata)
        next(steps, None)
        if metadata.is_prepared:
            self._changed(metadata)  # in the commit of the first markers: after a crash the others are written
            self._go_on(metadata, steps)

    def _go_on(self, metadata: TransactionMetadata, steps: Iterator[None]) -> None:
        self._journal.when_room(partial(self._slices.add, self, partial(self._continue, metadata, steps)))

    def _continue(self, metadata: TransactionMetadata, steps: Iterator[None], until: float) -> None:
        if self._closed:
            return
        try:
            while metadata.is_prepared:
                next(steps, None)
                if self._slices.now() >= until or not self._journal.room:
                    break
        except KafkaStorageException as error:
            log.warning("the transaction of %r is finished after a restart: %s", metadata.transactional_id, error)
        else:
            if metadata.is_prepared:
                self._go_on(metadata, steps)

    def _finish(self, metadata: TransactionMetadata, *, restarted: bool = False) -> Iterator[None]:
        """Completes a prepared transaction; yields when other work may be done first."""
        committed = metadata.state is TransactionState.PREPARE_COMMIT
        partitions = tuple(metadata.partitions)
        written, least = 0, self.few_markers
        while written < len(partitions):
            if written:
                yield
                least = 1
            at_once = self.markers_at_once
            if not restarted:
                at_once = min(at_once, max(least, self._journal.room))
            part = partitions[written : written + at_once]
            self._write_markers(part, metadata.marked, committed, restarted=restarted)
            written += len(part)
        yield from self.offsets.ending(metadata.marked[0], committed=committed)
        metadata.complete()
        self._changed(metadata)

    def _write_markers(
        self, partitions: Sequence[tuple[str, int]], marked: Identity, committed: bool, *, restarted: bool
    ) -> None:
        producer_id, producer_epoch = marked
        now_ms = self._clock.time_ms()
        markers = []
        for name, index in partitions:
            partition = self._state.find_partition(name, index)
            if partition is None:
                continue  # deleted meanwhile
            if restarted and producer_id not in partition.log.open_transactions:
                continue  # has its marker, or no record
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

    @staticmethod
    def _check_finished(metadata: TransactionMetadata) -> None:
        if metadata.is_prepared:
            raise ConcurrentTransactionsException(
                f"markers of the transaction of {metadata.transactional_id!r} are being written"
            )

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
        self._check_finished(metadata)
        if metadata.is_kept:
            raise InvalidTxnStateException(f"the transaction of {transactional_id!r} was kept, and can only be ended")
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
