"""The calls of a transactional producer (KIP-98), for its users; docs/transactions.md has the promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Self

from aioproducer.errors import KafkaError
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition


class TransactionalCalls(ABC):
    """A mixin of the producer."""

    @abstractmethod
    def _transactional(self, call: str) -> TransactionManager:
        """The object that carries out the call; IllegalStateException if the call is not allowed here and now."""

    @abstractmethod
    def _transactional_call_took(self, call: str, seconds: float) -> None:
        """A call has succeeded (``TRANSACTIONAL_CALLS``)."""

    @abstractmethod
    def _seconds(self) -> float:
        """The loop's time."""

    @contextmanager
    def _timed(self, call: str) -> Iterator[None]:
        """Measures a block that succeeds; as in Kafka, one that fails is not measured."""
        began = self._seconds()
        yield
        self._transactional_call_took(call, self._seconds() - began)

    async def init_transactions(self) -> None:
        """Takes over the transactional.id: a producer that had it before is fenced, and its open transaction aborted.

        Call it once, before the first transaction. TimeoutException after max.block.ms: calling again waits on.
        """
        transactions = self._transactional("init_transactions()")
        with self._timed("init"):
            await transactions.init()

    async def begin_transaction(self) -> None:
        """Begins a transaction: it includes all records from now on. Sends nothing to a broker.

        If the caller of an abort was cancelled, this waits for that abort to end, at most max.block.ms.
        End the transaction within transaction.timeout.ms: otherwise the coordinator aborts it, and to commit it then
        leaves the producer unusable.
        """
        transactions = self._transactional("begin_transaction()")
        with self._timed("begin"):
            await transactions.begin()

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata | str,
    ) -> None:
        """Makes a group's offsets (of the next records to read) part of the transaction.

        ``group`` is the consumer's membership in the group, or the id of a group without members (KIP-447).
        """
        metadata = ConsumerGroupMetadata(group) if isinstance(group, str) else group
        transactions = self._transactional("send_offsets_to_transaction()")
        with self._timed("send-offsets"):
            await transactions.send_offsets(offsets, metadata)

    async def commit_transaction(self) -> None:
        """Delivers every record of the transaction, and commits it.

        TransactionAbortableException if a record could not be delivered: then abort. ProducerFencedException if a newer
        producer has taken over. TimeoutException after max.block.ms: the commit continues, and calling again waits for
        its end. Cancelling the waiting task does not undo the commit either.

        InvalidTxnStateException, or ProducerFencedException with a broker before 4.0, if the transaction was open for
        longer than transaction.timeout.ms: the coordinator has aborted it, and the producer is unusable. Close it, and
        repeat the transaction with a new one.
        """
        transactions = self._transactional("commit_transaction()")
        with self._timed("commit"):
            await transactions.commit()

    async def abort_transaction(self) -> None:
        """Aborts the transaction: committed readers see none of its records, and unsent ones fail with
        TransactionAbortedException.

        Time-outs and cancellation as with :meth:`commit_transaction`.
        """
        transactions = self._transactional("abort_transaction()")
        with self._timed("abort"):
            await transactions.abort()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction: committed at the end of the block, aborted if that raises or is cancelled.

        ::

            async with producer.transaction():
                producer.send("orders", b"value")
        """
        transactions = self._transactional("transaction()")
        with self._timed("begin"):
            await transactions.begin()
        try:
            yield self
            with self._timed("commit"):
                await transactions.commit()
        except BaseException as error:
            # After a commit only a failed one may be followed by an abort.
            if transactions.is_open():
                try:
                    with self._timed("abort"):
                        await transactions.abort()
                except KafkaError as failed:
                    if isinstance(error, Exception):
                        raise
                    error.add_note(f"the transaction was not aborted: {failed}")  # a cancellation must not be replaced
            raise
