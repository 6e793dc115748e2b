"""Where a transactional producer stands and what it has failed with: what that allows, and what other calls raise."""

from __future__ import annotations

from aioproducer.error_code import ErrorCode
from aioproducer.errors import (
    IllegalStateException,
    KafkaError,
    TransactionAbortableException,
    TransactionAbortedException,
)
from aioproducer.producer.transaction_state import TransactionState, check_transition

S = TransactionState


class TransactionStatus:
    """Rules only; to act on them is the ``TransactionManager``'s part."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.state = S.UNINITIALIZED
        self.error: KafkaError | None = None
        """Why the transaction, or the producer, has failed."""
        self.closed = False

    def become(self, state: TransactionState, error: KafkaError | None = None) -> None:
        """``error`` is what it failed with, if it has; that stays until it is taken back."""
        check_transition(self.state, state)
        self.state = state
        if error is not None:
            self.error = error

    def require(self, name: str, *states: TransactionState) -> None:
        """Raises what the user has to know who called ``name`` in another state than one of these."""
        if self.closed:
            raise IllegalStateException(f"{name} was called, but the producer is closed")
        if self.state in (S.ABORTABLE_ERROR, S.FATAL_ERROR) and self.state not in states:
            raise self.failure()
        if self.state not in states:
            raise IllegalStateException(f"{name} was called, but {self._in_words()}")

    def is_open(self) -> bool:
        """Whether there is a transaction that nobody has committed or aborted yet."""
        return self.state in (S.IN_TRANSACTION, S.ABORTABLE_ERROR)

    def goes_on(self) -> bool:
        """Whether anything may still become a part of the transaction, and be committed."""
        return self.state in (S.IN_TRANSACTION, S.COMMITTING)

    def why_no_records(self) -> str:
        """Why no record may be sent now; empty if one may."""
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
        """For records that did nothing wrong, of a transaction that has failed."""
        return TransactionAbortedException(f"another record of the transaction failed: {self.error}")

    def _in_words(self) -> str:
        return self.state.value if self.error is None else f"{self.state.value}: {self.error}"
