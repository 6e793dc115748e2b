"""Sequence numbers of an idempotent producer, one partition at a time (seed 000, "Ordering & idempotence").

A batch gets its producer id, epoch and first sequence when it is drained for the first time, and keeps them: a retry is
byte-identical. It is *unresolved* from then until its fate is known, on the wire or not. From the lowest one that is
unresolved on, at most ``window`` batches are drained, resolved since or not, as the broker remembers no more of them:
that one may have to be sent again. When a gap opens (a batch ended without its sequences being proven used,
or the broker says it misses some), nothing new is drained until no batch is unresolved; then the partition goes on
with the next epoch from sequence 0. Epochs are counted per partition: brokers keep producer state per partition, so a
gap in one leaves all others alone, and so do batches still under way (KAFKA-14034, librdkafka#4953).

A broker takes any sequence as the first of a producer id that it does not know. So until one batch of an id is in the
log, batches go one at a time: else the second could be taken where the first was refused, and order be lost.

Rules only: no asyncio, no clock.

Compiled when there is a compiler.
"""

from __future__ import annotations

from typing import NamedTuple, final

from aioproducer.producer.producer_batch import ProducerBatch

MAX_EPOCH = 2**15 - 1
WINDOW = 5
"""Batches a broker remembers per producer and partition, unless it says otherwise (``NUM_BATCHES_TO_RETAIN``)."""


class ProducerIdAndEpoch(NamedTuple):
    """What InitProducerId gives out."""

    producer_id: int
    epoch: int


def increment_sequence(sequence: int, by: int) -> int:
    """Sequences are 31-bit: after 2³¹-1 comes 0."""
    return (sequence + by) & 0x7FFFFFFF


class ProducerIds:
    """The identity InitProducerId gave last; ``None`` while there is none, or none that is of further use."""

    def __init__(self) -> None:
        self.current: ProducerIdAndEpoch | None = None
        self.transactional = False
        """The coordinator assigns the epochs, one for all partitions."""
        self.transaction = 0
        """The number of the transaction that is open, or was."""
        self.in_doubt = False
        """Sequences under the present epoch are in doubt: a transaction of the first protocol needs another one."""

    def given(self, identity: ProducerIdAndEpoch) -> None:
        self.current = identity
        self.in_doubt = False

    def used_up(self, identity: ProducerIdAndEpoch) -> None:
        """A partition has no epochs left under this producer id: another id is needed."""
        if self.transactional:
            return
        if self.current is not None and self.current.producer_id == identity.producer_id:
            self.current = None


@final
class PartitionSequences:
    """One partition's sequence state."""

    __slots__ = (
        "_ids",
        "_places",
        "_stamped",
        "broken",
        "identity",
        "joined",
        "known_id",
        "next_sequence",
        "unresolved",
        "window",
    )

    def __init__(self, ids: ProducerIds, window: int = WINDOW) -> None:
        self._ids = ids
        self.window = window
        self.identity: ProducerIdAndEpoch | None = None
        self.next_sequence = 0
        self.unresolved: list[ProducerBatch] = []
        self._stamped = 0
        self._places: list[int] = []  # in step with the unresolved: how many batches were stamped before each
        self.broken = False
        self.joined = -1
        """The number of the transaction that the partition was added to last."""
        self.known_id = -1
        """The producer id under which the broker has appended a batch."""

    def has_id(self) -> bool:
        """Whether there is a producer id to stamp new batches with."""
        return self._ids.current is not None

    def may_drain_new(self) -> bool:
        """Whether a batch without a sequence may be given one now."""
        ids = self._ids
        if not self.has_id():
            return False
        if ids.transactional and (not self.in_transaction() or (self.broken and self.identity == ids.current)):
            return False  # what is in doubt ends with the epoch, and that with the transaction
        if not self.unresolved:
            return True
        if self.broken or self.identity is None or self.identity.producer_id != self.known_id:
            return False
        return self._stamped - self._places[0] < self.window

    def in_transaction(self) -> bool:
        """Whether the partition is part of the open transaction; always true without transactions."""
        return not self._ids.transactional or self.joined == self._ids.transaction

    @property
    def transactional(self) -> bool:
        return self._ids.transactional

    def stamp(self, batch: ProducerBatch) -> None:
        """Gives a batch without a sequence its identity and sequence; ``may_drain_new`` must hold."""
        assert self._ids.current is not None
        if self.identity is None:
            self.identity = self._ids.current
        elif self._ids.transactional:
            if self.identity != self._ids.current:
                self.identity = self._ids.current
                self.next_sequence = 0
        elif self.broken:
            self.identity = self._next_identity(self.identity, self._ids.current)
            self.next_sequence = 0
        self.broken = False
        batch.producer_id, batch.producer_epoch = self.identity
        batch.base_sequence = self.next_sequence
        self.next_sequence = increment_sequence(self.next_sequence, batch.count)
        self.unresolved.append(batch)
        self._places.append(self._stamped)
        self._stamped += 1

    def _next_identity(self, mine: ProducerIdAndEpoch, current: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        if mine.producer_id != current.producer_id:
            return current
        return ProducerIdAndEpoch(mine.producer_id, mine.epoch + 1)

    def is_lowest(self, batch: ProducerBatch) -> bool:
        """Whether every batch before this one is resolved."""
        return bool(self.unresolved) and self.unresolved[0] is batch

    def log_is_new(self) -> None:
        """The partition has a new log, which knows no producer id yet."""
        self.known_id = -1

    def resolve(self, batch: ProducerBatch) -> None:
        """The batch's sequences are used in the log."""
        self.known_id = batch.producer_id
        self._remove(batch)
        self._renew_if_used_up()

    def break_off(self) -> None:
        """A gap opens, as when a batch on the wire is given up: nothing new before all that is unresolved has ended."""
        self.broken = True
        if self.identity == self._ids.current:
            self._ids.in_doubt = True

    def abandon(self, batch: ProducerBatch) -> None:
        """The batch has ended, and its sequences may or may not be used: a gap."""
        self.break_off()
        self._remove(batch)
        self._renew_if_used_up()

    def split(self, batch: ProducerBatch, children: list[ProducerBatch]) -> None:
        """Its children take the batch's place, with its sequences, and as many places in the window as they are."""
        place = self.unresolved.index(batch)
        more = len(children) - 1
        first = self._places[place]
        self.unresolved[place : place + 1] = children
        self._places[place:] = [*range(first, first + more + 1), *(after + more for after in self._places[place + 1 :])]
        self._stamped += more

    def unstamp(self, batch: ProducerBatch) -> None:
        """The broker refused the batch as out of order, and no attempt can have appended it: it is as if new."""
        self.abandon(batch)
        batch.producer_id = batch.producer_epoch = batch.base_sequence = -1
        batch.header = b""

    def _remove(self, batch: ProducerBatch) -> None:
        place = self.unresolved.index(batch)
        del self.unresolved[place], self._places[place]

    def _renew_if_used_up(self) -> None:
        if self.broken and not self.unresolved and self.identity is not None and self.identity.epoch >= MAX_EPOCH:
            self._ids.used_up(self.identity)
