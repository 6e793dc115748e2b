"""The transactional half of a producer: the users' calls, and what the Sender may do.

States are in ``state``, the meaning of errors is in ``verdict``, and the coordinator is in ``coordinator``.

An operation begun at the coordinator completes even if its callers stop waiting: a requested commit is never followed
by an abort, and calling the same method again waits for the same end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from random import Random
from typing import Any

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import (
    ApiException,
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
    TransactionAbortableException,
)
from aioproducer.net.client import KafkaClient
from aioproducer.prepared_txn_state import PreparedTxnState
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch, ProducerIds
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.transactions.consequences import FATAL_FOR_BATCHES, PARTS, may_arrive_late, named, not_aborted
from aioproducer.producer.transactions.coordinator import TransactionCoordinator
from aioproducer.producer.transactions.offsets import Offsets, TransactionOffsets
from aioproducer.producer.transactions.operation_slot import OperationSlot
from aioproducer.producer.transactions.partitions import TransactionPartitions
from aioproducer.producer.transactions.record_control import RecordControl
from aioproducer.producer.transactions.state import TransactionState
from aioproducer.producer.transactions.status import TransactionStatus
from aioproducer.producer.transactions.verdict import Verdict, verdict
from aioproducer.protocol.api_key import ApiKey
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.backoff import ExponentialBackoff
from aioproducer.types import ConsumerGroupMetadata

log = logging.getLogger(__name__)

S = TransactionState

INIT = "init_transactions"
PREPARE = "prepare_transaction"
COMPLETE = "complete_transaction"
COMMIT = "commit_transaction"
ABORT = "abort_transaction"
HAND_OVER = "hand_over"


class TransactionManager:
    """The calls of users, in the states that allow them, and what becomes of them; ``records`` are the Sender's."""

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        ids: ProducerIds,
        random: Random,
        supervisor: Supervisor,
        records: RecordControl,
    ) -> None:
        self._ids = ids
        self._records = records
        self._coordinator = TransactionCoordinator(config, client, ids, random, final=self._final)
        self.status = TransactionStatus(
            self._coordinator.transactional_id, two_phases=config.transaction_two_phase_commit_enable
        )
        backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
        self._partitions = TransactionPartitions(
            self._coordinator, self.status, supervisor, backoff, self._joined, records.passed
        )
        self._asked_to_end = False
        """The coordinator may have ended the transaction: it was asked to, and has not given a final answer."""
        self.may_be_committed = False
        self._prepared = PreparedTxnState()
        """The state of the prepared transaction, if any."""
        self._completed = self._prepared, False
        """The state that the last ``complete`` was called with, and whether that is to commit."""
        self._slot = self._new_slot(config)
        slot = self._new_slot(config)
        self._offsets = TransactionOffsets(self._coordinator, self.status, slot, missing=self.batch_failed)

    def _new_slot(self, config: ProducerConfig) -> OperationSlot:
        return OperationSlot(config.max_block_ms, lambda: self.last_error)

    @property
    def last_error(self) -> KafkaError | None:
        """The coordinator's last answer, if it was an error."""
        return self._coordinator.last_error

    # What users call

    async def init(self, *, keep_prepared_txn: bool = False) -> PreparedTxnState:
        name = f"{INIT}(keep_prepared_txn=True)" if keep_prepared_txn else INIT
        if keep_prepared_txn:
            self.status.require_two_phases(name)
        await self._operate(name, partial(self._init, keep_prepared_txn), S.INITIALIZING, S.UNINITIALIZED)
        return self._prepared

    async def begin(self, *, of_units: bool = False) -> None:
        if self._slot.name == ABORT:  # unlike a commit, an abort has only one possible outcome
            await self._slot.vacated(self._slot.until())
        self._slot.make_room("begin_transaction")
        self.status.require("begin_transaction", S.READY)
        self.status.become(S.IN_TRANSACTION)
        self.status.of_units = of_units
        self.may_be_committed = False
        self._coordinator.begun()
        self._partitions.begun()
        self._ids.transaction += 1
        self._records.gate(not of_units)

    async def send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        await self._offsets.send(offsets, group)

    async def prepare(self) -> PreparedTxnState:
        self.status.require_two_phases(PREPARE)
        self._offsets.slot.check_ended(PREPARE)
        self.status.require_all_sent(PREPARE)
        await self._operate(PREPARE, self._prepare, S.PREPARING_TRANSACTION, S.IN_TRANSACTION)
        return self._prepared

    async def complete(self, state: PreparedTxnState) -> bool:
        if not isinstance(state, PreparedTxnState):  # a text would be another state, and abort what was decided
            raise IllegalArgumentException(
                f"{COMPLETE} needs a PreparedTxnState, not {type(state).__name__}: "
                "PreparedTxnState.parse(text) makes one"
            )
        if self._slot.name != COMPLETE:
            self._slot.make_room(COMPLETE)
            self.status.require_prepared(COMPLETE)
            self._completed = state, state == self._prepared
        asked, committed = self._completed
        if state != asked:
            raise IllegalStateException(f"{COMPLETE} has not ended; call it with the same state again: {asked}")
        if committed:
            await self._operate(COMPLETE, self._commit, S.COMMITTING, S.PREPARED_TRANSACTION)
        else:
            await self._operate(COMPLETE, self._abort, S.ABORTING, S.PREPARED_TRANSACTION)
        return committed

    async def commit(self) -> None:
        self._offsets.slot.check_ended(COMMIT)
        self.status.require_all_sent(COMMIT)
        await self._operate(COMMIT, self._commit, S.COMMITTING, S.IN_TRANSACTION, S.PREPARED_TRANSACTION)

    async def abort(self) -> None:
        begins_in = S.IN_TRANSACTION, S.PREPARED_TRANSACTION, S.ABORTABLE_ERROR
        await self._operate(ABORT, self._abort, S.ABORTING, *begins_in)

    async def hand_over(self) -> ProducerIdAndEpoch:
        """Returns when the whole transaction is in the logs; another client ends it, under this identity.

        It stays open, also when the producer is closed. The producer can begin another one after another init().
        """
        self.status.require(HAND_OVER, S.IN_TRANSACTION)
        await self._records.flush()
        await self._partitions.settled()
        await self._offsets.slot.settled()
        self.status.require(HAND_OVER, S.IN_TRANSACTION)
        self._records.gate(False)
        self.status.become(S.COMMITTING)
        self.status.become(S.UNINITIALIZED)
        return self.identity

    @property
    def identity(self) -> ProducerIdAndEpoch:
        """The producer's identity at the coordinator, once initialized."""
        return self._coordinator.identity

    @property
    def second_protocol(self) -> bool:
        """Whether the transaction under way is one of KIP-890."""
        return self._coordinator.protocol.second

    async def finish(self) -> None:
        """For a producer that is closed in the middle of a transaction: completes its commit or abort, or aborts it.

        Its records report failures. A prepared transaction stays open, because it is decided elsewhere.
        """
        while self.is_open() or self.status.state in (S.PREPARING_TRANSACTION, S.COMMITTING, S.ABORTING):
            # What has failed may still wait for its records, and nothing else can begin before its end.
            is_under_way = self._slot.name in (PREPARE, COMPLETE, COMMIT)
            try:
                await (self._slot.ended(self._slot.until()) if is_under_way else self.abort())
            except KafkaError as error:
                log.warning("the transaction of %r did not end properly: %s", self.status.transactional_id, error)
                if not (is_under_way and isinstance(error, TransactionAbortableException)):
                    return
        if self.status.state is S.PREPARED_TRANSACTION:
            log.info("the transaction of %r stays prepared, as %s", self.status.transactional_id, self._prepared)

    def is_open(self) -> bool:
        return self.status.is_open()

    def why_no_records(self) -> str:
        return self.status.why_no_records()

    # Called by the Sender

    @property
    def newest_produce(self) -> int | None:
        return self._coordinator.protocol.newest(ApiKey.PRODUCE)

    def partition_used(self, queue: PartitionQueue) -> None:
        """A batch was opened for the partition, which must join the transaction."""
        if _sequences(queue).joined != self._ids.transaction:
            self._partitions.add(queue)

    def answered(self, now: float) -> None:
        """A request with records of the transaction was answered."""
        self._coordinator.pause.answered(now)

    def batch_failed(self, error: KafkaError) -> None:
        """A batch of the transaction has failed, and the transaction with it."""
        if error.code in FATAL_FOR_BATCHES:
            self._fail_for_good(named(error))
        elif self.status.goes_on():
            self._fail_transaction(error)

    def producer_failed(self, error: KafkaError) -> None:
        """Nothing will be sent any more: all waiters are notified."""
        if self.status.state is not S.FATAL_ERROR:
            self.status.become(S.FATAL_ERROR, error)
            self._records.gate(False)
            for slot in (self._slot, self._offsets.slot):
                slot.cancel(error)

    def close(self) -> None:
        """Gives up the present operation; the coordinator aborts the transaction when its time is over."""
        self.status.closed = True
        for slot in (self._slot, self._offsets.slot):
            slot.close()

    async def closed(self) -> None:
        """Returns when the operation given up has ended."""
        for slot in (self._slot, self._offsets.slot):
            await slot.settled()

    # Operations

    async def _operate(
        self,
        name: str,
        work: Callable[[], Coroutine[Any, Any, None]],
        becomes: TransactionState,
        *begins_in: TransactionState,
    ) -> None:
        """Starts an operation, or waits on for the one of this name, at most max.block.ms."""
        if self._slot.name != name:
            self._slot.make_room(name)
            self.status.require(name, *begins_in)
            self.status.become(becomes)  # at once: a requested commit must not look like none
            self._slot.begin(name, work())
        await self._slot.ended(self._slot.until())

    async def _init(self, keep_prepared_txn: bool) -> None:
        self._prepared = await self._coordinator.take_identity(keep_prepared_txn=keep_prepared_txn)
        self.status.error = None
        if self._prepared:
            self._coordinator.started()
            self.status.become(S.PREPARED_TRANSACTION)
        else:
            self.status.become(S.READY)

    async def _prepare(self) -> None:
        self._records.gate(False)
        await self._records.flush()
        await self._partitions.settled()
        await self._offsets.slot.settled()
        if self.status.state is not S.PREPARING_TRANSACTION:
            raise self.status.failure()
        self._prepared = PreparedTxnState(*self.identity)
        self.status.become(S.PREPARED_TRANSACTION)

    async def _commit(self) -> None:
        self._records.gate(False)
        await self._records.flush()
        if self.status.state is not S.COMMITTING:
            raise self.status.failure()
        self.status.complete = True
        await self._end(committed=True)

    async def _abort(self) -> None:
        self._records.gate(False)
        why = self.status.aborted()
        self._records.give_up(why)
        self._offsets.give_up(why)
        await self._records.flush()
        await self._end(committed=False)

    async def _end(self, *, committed: bool) -> None:
        """Ends the transaction at the coordinator, if it knows of it, and gets the epoch of the next one."""
        self._asked_to_end = False
        before = self._ids.current
        await self._partitions.settled()
        await self._offsets.slot.settled()  # no answer may arrive after the end of the transaction
        if self._coordinator.knows or (self._coordinator.may_know and not committed):
            self.may_be_committed |= committed
            if await self._coordinator.end(committed=committed) and not committed:
                self.may_be_committed = False
        self.status.error = None
        self._prepared = PreparedTxnState()
        if self._coordinator.follow_feature() or self._ids.in_doubt or self._needs_another_epoch(before):
            try:
                await self._coordinator.take_identity()
            except KafkaError as error:
                # The transaction has ended all the same; the next call reports that there can be no other.
                log.warning("%r has no epoch for another transaction: %s", self.status.transactional_id, error)
                return
        self.status.become(S.READY)

    def _needs_another_epoch(self, before: ProducerIdAndEpoch | None) -> bool:
        """The state of a prepared transaction must be its own. With the first protocol transactions have the same
        epoch, and with the second one so has the transaction after an empty one."""
        return self.status.two_phases and self._ids.current == before

    def _joined(self, queues: Iterable[PartitionQueue]) -> None:
        """The partitions have joined the transaction."""
        self._coordinator.started()
        for queue in queues:
            _sequences(queue).joined = self._ids.transaction
        self._records.ready(*queues)

    # Failures

    def _final(self, api: ApiKey, error: KafkaError) -> KafkaError | None:
        """Handles a coordinator's error; returns the error for the caller, None if the request is to be repeated."""
        knows, asked_before = self._coordinator.knows, self._asked_to_end
        what = verdict(api, error, self.status.state, knows=knows, asked_before=asked_before)
        if what is Verdict.ASK_AGAIN:
            self._asked_to_end |= api is ApiKey.END_TXN
            if may_arrive_late(api, error):
                self._ids.in_doubt = True  # under the same epoch it could take part in the next transaction, or end it
            return None
        if api in PARTS:
            self._ids.in_doubt = True  # an earlier attempt may have had an effect
        if api is ApiKey.END_TXN and isinstance(error, ApiException) and not asked_before:
            self.may_be_committed = False  # the coordinator has answered the only attempt: it has not
        match what:
            case Verdict.TELL:
                return error.fresh()
            case Verdict.REFUSE:
                self.status.become(S.UNINITIALIZED, error)
                return error.fresh()
            case Verdict.FAIL_TRANSACTION:
                self._fail_transaction(error)
            case Verdict.FAIL_ABORT:
                self._fail_for_good(not_aborted(error))
            case Verdict.FAIL_PRODUCER:
                self._fail_for_good(named(error))
        return self.status.failure()

    def _fail_transaction(self, error: KafkaError) -> None:
        self.status.become(S.ABORTABLE_ERROR, error)
        self._records.gate(False)
        # Later: the code that reports the failure may be in the middle of its own work with these batches.
        asyncio.get_running_loop().call_soon(self._give_up_the_rest)

    def _give_up_the_rest(self) -> None:
        if self.status.state is S.ABORTABLE_ERROR:
            self._records.give_up(self.status.another_failed())

    def _fail_for_good(self, error: KafkaError) -> None:
        if self.status.state is not S.FATAL_ERROR:
            self._records.fatal(error)


def _sequences(queue: PartitionQueue) -> PartitionSequences:
    sequences = queue.sequences
    assert sequences is not None, "a transactional producer is idempotent"
    return sequences
