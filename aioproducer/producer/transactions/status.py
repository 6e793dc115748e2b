"""The state and the failure of a transactional producer: which calls they allow, and what others raise."""

from __future__ import annotations

from aioproducer.errors import (
    IllegalStateException,
    InvalidTxnStateException,
    KafkaError,
    TransactionAbortableException,
    TransactionAbortedException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.transactions.state import TransactionState, check_transition

S = TransactionState


class TransactionStatus:
    """Rules only; the ``TransactionManager`` acts on them."""

    def __init__(self, transactional_id: str, *, two_phases: bool = False) -> None:
        self.transactional_id = transactional_id
        self.two_phases = two_phases
        """transaction.two.phase.commit.enable."""
        self.state = S.UNINITIALIZED
        self.error: KafkaError | None = None
        """Why the transaction, or the producer, has failed."""
        self.closed = False
        self.transaction = 0
        """The number of the open transaction, or of the last one."""
        self.complete = False
        """All its records are delivered, and the commit is under way: later failures do not affect it."""
        self.of_units = False
        """The transaction, until it has ended, is one of units: no other record may join it."""
        self._bulk_calls = 0
        """Calls that have not sent all their records to it yet."""

    def become(self, state: TransactionState, error: KafkaError | None = None) -> None:
        """``error`` is the failure, if any; without one, an earlier failure stays."""
        check_transition(self.state, state)
        self.state = state
        if error is not None:
            self.error = error
        if state is S.IN_TRANSACTION:
            self.transaction += 1
            self.complete = False
            self._bulk_calls = 0
        if state in (S.READY, S.UNINITIALIZED, S.FATAL_ERROR):
            self.of_units = False

    def require(self, name: str, *states: TransactionState) -> None:
        """Raises the explanation for a user who called ``name`` in a state other than these."""
        if self.closed:
            raise IllegalStateException(f"{name} was called, but the producer is closed")
        if self.state in (S.ABORTABLE_ERROR, S.FATAL_ERROR) and self.state not in states:
            raise self.failure()
        if self.state not in states:
            raise IllegalStateException(f"{name} was called, but {self._in_words()}")

    def require_two_phases(self, name: str) -> None:
        """Raises for a user who called ``name``, which is part of a two-phase commit, if that is not enabled."""
        if not self.two_phases:
            raise InvalidTxnStateException(f"{name} was called, and it needs transaction.two.phase.commit.enable=true")

    def require_prepared(self, name: str) -> None:
        """Raises the explanation for a user who called ``name`` without a prepared transaction."""
        if self.state in (S.UNINITIALIZED, S.READY, S.IN_TRANSACTION) and not self.closed:
            raise InvalidTxnStateException(
                f"{name} was called, but no transaction is prepared: call prepare_transaction, or "
                "init_transactions(keep_prepared_txn=True), which returns the state of one that was kept"
            )
        self.require(name, S.PREPARED_TRANSACTION)

    def bulk_began(self) -> int:
        """A bulk call starts; returns the number of its transaction."""
        self._bulk_calls += 1
        return self.transaction

    def bulk_ended(self, transaction: int) -> None:
        """A bulk call will send no more to that transaction."""
        if transaction == self.transaction:
            self._bulk_calls -= 1

    def require_all_sent(self, name: str) -> None:
        """Raises if bulk calls still have records to send, for a user who calls ``name`` to commit."""
        if self._bulk_calls and self.state is S.IN_TRANSACTION:
            raise IllegalStateException(
                f"{name} was called, but send_many or send_table has not sent all its records yet: await it first"
            )

    def is_open(self) -> bool:
        """Whether a transaction is open, neither committed nor aborted yet."""
        return self.state in (S.IN_TRANSACTION, S.ABORTABLE_ERROR)

    def goes_on(self) -> bool:
        """Whether records and offsets of the transaction may be under way, and it can be committed."""
        going_on = self.state in (S.IN_TRANSACTION, S.PREPARING_TRANSACTION)
        return going_on or (self.state is S.COMMITTING and not self.complete)

    def why_no_records(self) -> str:
        """Why no record may be sent now; empty if sending is allowed."""
        if self.of_units:
            return "units are in use, and a record outside a unit could join their transaction: use unit.send()"
        if self.state is S.IN_TRANSACTION:
            return ""
        return f"records of a transactional producer belong to a transaction, and {self._in_words()}"

    def failure(self) -> KafkaError:
        """The state as an exception."""
        if self.error is None:
            return self.aborted()
        if self.state is S.FATAL_ERROR:
            return self.error.fresh()
        what = f"the transaction has failed and must be aborted: {self.error}"
        if self.error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
            what += "; it was open for longer than transaction.timeout.ms, or a newer producer has taken over"
        failure = TransactionAbortableException(what)
        failure.__cause__ = self.error
        return failure

    def aborted(self) -> KafkaError:
        return TransactionAbortedException(f"the transaction of {self.transactional_id!r} is being aborted")

    def another_failed(self) -> KafkaError:
        """For the blameless records of a failed transaction."""
        return TransactionAbortedException(f"another record of the transaction failed: {self.error}")

    def _in_words(self) -> str:
        return self.state.value if self.error is None else f"{self.state.value}: {self.error}"
