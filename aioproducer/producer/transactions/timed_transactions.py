"""The calls of users for transactions, measured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from aioproducer.errors import KafkaError
from aioproducer.metrics import ProducerMetrics
from aioproducer.prepared_txn_state import PreparedTxnState
from aioproducer.producer.transactions.offsets import Offsets
from aioproducer.producer.transactions.transaction_calls import TransactionCalls
from aioproducer.types import ConsumerGroupMetadata


class TimedTransactions:
    """Measures each call that succeeds; as in Kafka, one that fails is not measured. ``time()`` is in seconds."""

    def __init__(self, transactions: TransactionCalls, metrics: ProducerMetrics, time: Callable[[], float]) -> None:
        self._transactions = transactions
        self._metrics = metrics
        self._time = time

    @contextmanager
    def _timed(self, call: str) -> Iterator[None]:
        began = self._time()
        yield
        self._metrics.transactional_call(call, self._time() - began)

    async def init(self, *, keep_prepared_txn: bool) -> PreparedTxnState:
        with self._timed("init"):
            return await self._transactions.init(keep_prepared_txn=keep_prepared_txn)

    async def begin(self, *, of_units: bool = False) -> None:
        with self._timed("begin"):
            await self._transactions.begin(of_units=of_units)

    async def send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        with self._timed("send-offsets"):
            await self._transactions.send_offsets(offsets, group)

    async def prepare(self) -> PreparedTxnState:
        with self._timed("prepare"):
            return await self._transactions.prepare()

    async def complete(self, state: PreparedTxnState) -> bool:
        began = self._time()
        committed = await self._transactions.complete(state)
        self._metrics.transactional_call("commit" if committed else "abort", self._time() - began)
        return committed

    async def commit(self) -> None:
        with self._timed("commit"):
            await self._transactions.commit()

    async def abort(self) -> None:
        with self._timed("abort"):
            await self._transactions.abort()

    @asynccontextmanager
    async def block(self) -> AsyncIterator[None]:
        """A transaction: committed at the end of the block, aborted if that raises or is cancelled."""
        await self.begin()
        try:
            yield
            await self.commit()
        except BaseException as error:
            # After a commit only a failed one may be followed by an abort.
            if self._transactions.is_open():
                try:
                    await self.abort()
                except KafkaError as failed:
                    if isinstance(error, Exception):
                        raise
                    error.add_note(f"the transaction was not aborted: {failed}")  # a cancellation must not be replaced
            raise
