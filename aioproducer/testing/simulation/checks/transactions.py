"""Every transaction, and its end as the producer reported it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from aioproducer.errors import KafkaError
from aioproducer.testing.simulation.trace import Trace
from aioproducer.types import TopicPartition


class End(Enum):
    """How a transaction ended, as reported to its user."""

    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(eq=False, slots=True)
class Life:
    """One producer of a transactional id. Times are the loop's."""

    transactional_id: str
    producer: int
    init_requested_at: float
    initialized_at: float | None = None
    closing: bool = False
    """It is being closed, so it may refuse any call."""

    def is_newer_than(self, other: Life) -> bool:
        """Whether it has taken over from the other, for sure."""
        before = other.initialized_at
        return (
            self.transactional_id == other.transactional_id and before is not None and self.init_requested_at >= before
        )


@dataclass(eq=False, slots=True)
class Transaction:
    """``offset`` is what a group committed in it (each transaction has a partition of its own for that)."""

    number: int
    life: Life
    commit_requested_at: float | None = None
    """From then on it may be committed; None: never."""
    end: End | None = None
    """None: nothing was reported to the user, or nothing certain."""
    group: str = ""
    offset: TopicPartition | None = None
    offset_taken: bool = False
    """The offset was reported to the user as a part of the transaction."""
    of_units: bool = False
    """It is a unit, which shares a transaction of Kafka with others."""
    ended: int = 0
    """The place of a unit in the order of the ends of blocks; 0 if its block raised."""
    cancelled: bool = False
    """The task of a unit was cancelled, or its producer closed."""
    failure: KafkaError | None = None
    """What a unit raised."""
    doomed: bool = False
    """The unit has asked for what is never accepted."""

    def __repr__(self) -> str:
        ending = "undetermined" if self.end is None else self.end.value
        what = "unit" if self.of_units else "transaction"
        return f"{what} {self.number} of {self.life.transactional_id} (producer {self.life.producer}, {ending})"


@dataclass(slots=True)
class TransactionLedger:
    """All lives and transactions of a run."""

    trace: Trace
    lives: list[Life] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    ends: int = 0
    """Of the blocks of units."""

    def begin(self, life: Life) -> Transaction:
        transaction = Transaction(len(self.transactions), life)
        self.trace("begin", transaction)
        self.transactions.append(transaction)
        return transaction

    def ended(self, unit: Transaction, now: float) -> None:
        """The block of a unit ends now."""
        self.ends += 1
        unit.ended, unit.commit_requested_at = self.ends, now

    def fenced(self, life: Life, at: float) -> bool:
        """Whether a newer producer had certainly taken over by then."""
        return any(
            one.is_newer_than(life) and one.initialized_at is not None and one.initialized_at <= at
            for one in self.lives
        )
