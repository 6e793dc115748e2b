"""The interface of transactions, as the producer's calls use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from aioproducer.errors import KafkaError
from aioproducer.types import ConsumerGroupMetadata

# Nothing of transactions is imported before there is a producer that has them.
if TYPE_CHECKING:
    from aioproducer.prepared_txn_state import PreparedTxnState
    from aioproducer.producer.transactions.offsets import Offsets
    from aioproducer.producer.transactions.status import TransactionStatus


class TransactionCalls(Protocol):
    """The TransactionManager, or what takes its place in a mock."""

    status: TransactionStatus
    may_be_committed: bool
    """The coordinator was asked to commit the transaction, and it is not known that it has not done so. Also true after
    a commit, until the next transaction begins."""

    async def init(self, *, keep_prepared_txn: bool = False) -> PreparedTxnState:
        """Returns the prepared transaction that was kept, if that was asked for and there is one."""

    async def begin(self, *, of_units: bool = False) -> None:
        """``of_units``: no record may be sent to the transaction but those that units put into the accumulator."""

    async def send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None: ...

    async def prepare(self) -> PreparedTxnState: ...

    async def complete(self, state: PreparedTxnState) -> bool:
        """Commits the prepared transaction if ``state`` is its state, and aborts it otherwise; returns whether it was
        committed."""

    async def commit(self) -> None: ...

    async def abort(self) -> None: ...

    async def finish(self) -> None:
        """Ends the transaction of a producer that is closed."""

    def is_open(self) -> bool: ...

    def why_no_records(self) -> str:
        """Why no record may be sent now; empty if one may."""

    def batch_failed(self, error: KafkaError) -> None:
        """A record of the transaction has failed."""
