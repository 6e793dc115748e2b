"""One transactional id: its producer id and epoch, and the state of its transaction (Kafka's ``TransactionMetadata``).

These are rules only: the table :data:`TRANSITIONS` has the allowed changes of state, and every other one is refused.
"""

from __future__ import annotations

from enum import Enum

from aioproducer.broker.log.producer_state import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from aioproducer.errors import IllegalStateException

MAX_EPOCH = 2**15 - 1
LAST_USABLE_EPOCH = MAX_EPOCH - 1
"""The last epoch that a producer gets; the one after it is reserved for fencing."""

NEVER_MS = 2**31 - 1
"""The time-out of transactions that take part in a two-phase commit (KIP-939), as in Kafka: they have none."""


class TransactionState(Enum):
    """Kafka's states. In those that begin with *prepare* the end is decided, and markers are being written."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


_S = TransactionState
TRANSITIONS: dict[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.COMPLETE_ABORT}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.COMPLETE_ABORT}),
}
"""The states that may follow each state. An abort without a transaction is allowed since KIP-890."""

COMPLETE = {_S.PREPARE_COMMIT: _S.COMPLETE_COMMIT, _S.PREPARE_ABORT: _S.COMPLETE_ABORT}
"""What a transaction becomes when all its markers are written."""


class TransactionMetadata:
    """A transactional id. ``partitions`` and ``groups`` are those of the current transaction. Times are in
    milliseconds."""

    def __init__(self, transactional_id: str, producer_id: int, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.previous = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        """Id and epoch before the last bump. A producer that retries with them has not received the bump's answer."""
        self.timeout_ms = timeout_ms
        self.state = TransactionState.EMPTY
        self.started_ms = -1
        """When the current or last transaction began; -1 if there was none since the producer got its id."""
        self.begun_as = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        """The id and epoch under which the current or last transaction began, and which its records have."""
        self.changed_ms = 0
        """The time of the last change, in Unix time."""
        self.partitions: dict[tuple[str, int], None] = {}
        self.groups: dict[str, None] = {}
        self.marked = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        """The id and epoch in the markers of a transaction that is prepared."""

    @property
    def identity(self) -> tuple[int, int]:
        return self.producer_id, self.producer_epoch

    @property
    def is_kept(self) -> bool:
        """Whether an earlier owner of the transactional id began the open transaction, which was kept (KIP-939)."""
        return self.state is TransactionState.ONGOING and self.begun_as != self.identity

    @property
    def described_as(self) -> tuple[int, int]:
        """The id and epoch by which others know it: those of the open transaction, if there is one."""
        return self.begun_as if self.state is TransactionState.ONGOING else self.identity

    @property
    def times_out(self) -> bool:
        """Whether its transactions are aborted when their time is over."""
        return self.timeout_ms != NEVER_MS

    def had_id(self, identity: tuple[int, int]) -> bool:
        """Whether the producer id of ``identity`` is the current one, or the previous one with its epochs used up."""
        producer_id, producer_epoch = identity
        return producer_id == self.producer_id or (
            producer_id == self.previous[0] and producer_epoch >= LAST_USABLE_EPOCH
        )

    @property
    def is_prepared(self) -> bool:
        """Whether its end is decided, and markers are missing."""
        return self.state in COMPLETE

    def begin(self, now_ms: int) -> None:
        """A transaction begins."""
        self.become(TransactionState.ONGOING)
        self.started_ms = now_ms
        self.begun_as = self.identity

    def prepare(self, marked: tuple[int, int], *, committed: bool) -> None:
        """The transaction will end so, and ``marked`` is in its markers."""
        self.become(TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT)
        self.marked = marked

    def complete(self) -> None:
        """All markers of the prepared transaction are written."""
        self.become(COMPLETE[self.state])
        self.partitions.clear()
        self.groups.clear()

    def become(self, state: TransactionState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateException(
                f"transaction {self.transactional_id!r} cannot change from {self.state.value} to {state.value}"
            )
        self.state = state

    def next_epoch(self, fresh_id: int | None) -> None:
        """Moves to the next epoch, or to ``fresh_id`` with epoch 0 if the epochs are used up (:meth:`is_exhausted`)."""
        self.previous = self.identity
        if fresh_id is None:
            self.producer_epoch += 1
        else:
            self.producer_id, self.producer_epoch = fresh_id, 0

    @property
    def is_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_USABLE_EPOCH
