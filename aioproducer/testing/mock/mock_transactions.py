"""Transactions without a coordinator: every call of a TransactionManager completes at once."""

from __future__ import annotations

import asyncio
import logging

from aioproducer.errors import KafkaError
from aioproducer.prepared_txn_state import PreparedTxnState
from aioproducer.producer.transactions.consequences import FATAL_FOR_BATCHES
from aioproducer.producer.transactions.offsets import Offsets, check
from aioproducer.producer.transactions.record_control import RecordControl
from aioproducer.producer.transactions.state import TransactionState
from aioproducer.producer.transactions.status import TransactionStatus
from aioproducer.testing.mock.mock_errors import MockErrors
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, ProducerRecord, TopicPartition

log = logging.getLogger(__name__)

S = TransactionState

GroupOffsets = dict[str, dict[TopicPartition, OffsetAndMetadata]]
"""The offsets of a transaction, by group."""


class MockTransactions:
    """Each state allows the same calls as in a TransactionManager; ``control`` controls the records.

    ``history`` gets the records of a transaction when it is committed.
    """

    def __init__(
        self,
        transactional_id: str,
        two_phases: bool,
        errors: MockErrors,
        history: list[ProducerRecord],
        control: RecordControl,
    ) -> None:
        self.status = TransactionStatus(transactional_id, two_phases=two_phases)
        self.may_be_committed = False
        self.records: list[ProducerRecord] = []
        """The records of the open transaction."""
        self.offsets: GroupOffsets = {}
        self.offsets_history: list[GroupOffsets] = []
        """The offsets of committed transactions that had any."""
        self.sent_offsets = False
        self.last_end: TransactionState | None = None
        """COMMITTING or ABORTING: how the last transaction ended. None if another has begun since."""
        self.commits = 0
        self._prepared = PreparedTxnState()
        self._errors = errors
        self._history = history
        self._control = control

    async def init(self, *, keep_prepared_txn: bool = False) -> PreparedTxnState:
        """There is no transaction from before, which could be kept."""
        if keep_prepared_txn:
            self.status.require_two_phases("init_transactions(keep_prepared_txn=True)")
        self.status.require("init_transactions", S.UNINITIALIZED)
        self._errors.strike("init_transactions")
        self.status.become(S.INITIALIZING)
        self.status.become(S.READY)
        return PreparedTxnState()

    async def begin(self, *, of_units: bool = False) -> None:
        self.status.require("begin_transaction", S.READY)
        self._errors.strike("begin_transaction")
        self.status.become(S.IN_TRANSACTION)
        self.status.of_units = of_units
        self.last_end = None
        self.sent_offsets = False
        self._control.gate(not of_units)

    async def send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        check(offsets, group)
        self.status.require("send_offsets_to_transaction", S.IN_TRANSACTION)
        self._errors.strike("send_offsets_to_transaction")
        if not offsets:
            return
        of_group = self.offsets.setdefault(group.group_id, {})
        for where, offset in offsets.items():
            of_group[TopicPartition(*where)] = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        self.sent_offsets = True

    async def prepare(self) -> PreparedTxnState:
        """The number of the transaction stands in for its epoch."""
        self.status.require_two_phases("prepare_transaction")
        self.status.require("prepare_transaction", S.IN_TRANSACTION)
        self.status.require_all_sent("prepare_transaction")
        self._errors.strike("prepare_transaction")
        await self._deliver_all(S.PREPARING_TRANSACTION)
        self._prepared = PreparedTxnState(0, self.status.transaction)
        self.status.become(S.PREPARED_TRANSACTION)
        return self._prepared

    async def complete(self, state: PreparedTxnState) -> bool:
        self.status.require_prepared("complete_transaction")
        self._errors.strike("complete_transaction")
        committed = state == self._prepared
        await (self.commit() if committed else self.abort())
        return committed

    async def _deliver_all(self, state: TransactionState) -> None:
        """Becomes ``state``, in which all records are delivered. Raises the error of one that fails meanwhile."""
        self.status.become(state)
        self._control.gate(False)
        await self._control.flush()
        if self.status.state is not state:
            raise self.status.failure()

    async def commit(self) -> None:
        self.status.require("commit_transaction", S.IN_TRANSACTION, S.PREPARED_TRANSACTION)
        self.status.require_all_sent("commit_transaction")
        self._errors.strike("commit_transaction")
        await self._deliver_all(S.COMMITTING)
        self.status.complete = True
        self._history += self.records
        if self.offsets:
            self.offsets_history.append(self.offsets)
        self.commits += 1
        self._end(S.COMMITTING)

    async def abort(self) -> None:
        self.status.require("abort_transaction", S.IN_TRANSACTION, S.PREPARED_TRANSACTION, S.ABORTABLE_ERROR)
        self._errors.strike("abort_transaction")
        self.status.become(S.ABORTING)
        self._control.gate(False)
        self._control.give_up(self.status.aborted())
        self.status.error = None
        self._end(S.ABORTING)

    async def finish(self) -> None:
        """Aborts the open transaction when the producer is closed; one that is prepared stays."""
        if self.is_open():
            try:
                await self.abort()
            except KafkaError as error:
                log.warning("the transaction was not ended as it should: %s", error)

    def is_open(self) -> bool:
        return self.status.is_open()

    def in_flight(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self.is_open() or self.status.state in (S.PREPARING_TRANSACTION, S.PREPARED_TRANSACTION)

    def why_no_records(self) -> str:
        return self.status.why_no_records()

    def initialized(self) -> bool:
        return self.status.state not in (S.UNINITIALIZED, S.INITIALIZING)

    def batch_failed(self, error: KafkaError) -> None:
        """Fails the transaction, because one of its records has failed."""
        if self.status.state is S.FATAL_ERROR:
            return
        if error.code in FATAL_FOR_BATCHES:
            self._control.fatal(error)
        elif self.status.goes_on():
            self.status.become(S.ABORTABLE_ERROR, error)
            self._control.gate(False)
            asyncio.get_running_loop().call_soon(self._give_up_the_rest)

    def producer_failed(self, error: KafkaError) -> None:
        """Ends all transactions: the producer is unusable."""
        if self.status.state is not S.FATAL_ERROR:
            self.status.become(S.FATAL_ERROR, error)
            self._control.gate(False)

    def clear(self) -> None:
        """Forgets records and offsets, but keeps the state."""
        self.records.clear()
        self.offsets = {}
        self.offsets_history.clear()
        self.sent_offsets = False

    def _give_up_the_rest(self) -> None:
        if self.status.state is S.ABORTABLE_ERROR:
            self._control.give_up(self.status.another_failed())

    def _end(self, how: TransactionState) -> None:
        self.records = []
        self.offsets = {}
        self.last_end = how
        self.status.become(S.READY)
