"""Sequence numbers of an idempotent producer, one partition at a time.

A batch gets its producer id, epoch and first sequence when it is drained for the first time, and keeps them: a retry is
byte-identical. It is *unresolved* from then until its fate is known, on the wire or not. Counted from the lowest
unresolved batch, at most ``window`` batches are drained, resolved since or not: that batch may have to be sent again,
and the broker remembers no more. When a gap opens (a batch ended without proof that its sequences are used, or the
broker reports missing ones), nothing new is drained until no batch is unresolved; then the partition continues with the
next epoch from sequence 0. Epochs are counted per partition: brokers keep producer state per partition, so a gap in one
affects neither the others nor their batches under way (KAFKA-14034, librdkafka#4953).

A broker that misses sequences before a batch proves that the batch is not in the log (:meth:`proves_absence`). The
batch then loses its stamp and gets one of the next epoch. The stamps of the batches behind it become *void* with it: a
log that has forgotten the producer would accept them before it. A log that is proven new makes all stamps void.

A broker accepts any sequence as the first of a producer id that it does not know. So until one batch of an id is in the
log, batches are sent one at a time: otherwise the broker could refuse the first and accept the second, out of order. A
broker forgets producers that write nothing for long. So batches are sent one at a time after a pause, too, and while
one must be sent again. For a broker, the time of a batch is the newest timestamp in it, and a producer is as old as its
last batch: it may forget the producer right after a batch of old records. So such a batch is drained alone: not before
all others are resolved, and nothing behind it until it is.

Rules only: no asyncio, no clock.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch, ProducerIds
from aioproducer.records.batch_layout import increment_sequence

MAX_EPOCH = 2**15 - 1
WINDOW = 5
"""Batches a broker remembers per producer and partition, unless it announces more (``NUM_BATCHES_TO_RETAIN``)."""

REMEMBERED_MS: Final = 12 * 3600 * 1000
"""The age of a record's timestamp in milliseconds up to which its broker remembers the producer: half of the default of
``producer.id.expiration.ms``."""

_ALWAYS: Final = -(2**62)
"""A timestamp older than all."""

_NEW: Final = 2**62
"""A timestamp newer than all."""

_NOWHERE: Final = 2**62
"""The place of no batch."""


@final
@mypyc_attr(acyclic=True)
class PartitionSequences:
    """One partition's sequence state."""

    __slots__ = (
        "_absent_from",
        "_doubtful_until",
        "_gaps_before",
        "_ids",
        "_known_at",
        "_late_until",
        "_new_from",
        "_places",
        "_remembered_from",
        "_stamped",
        "_void",
        "append_time",
        "broken",
        "by_name",
        "identity",
        "joined",
        "known_id",
        "log",
        "next_sequence",
        "remembered",
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
        """The producer id of the last batch known to be in the present log."""
        self._known_at: float = 0.0
        """When the last batch was sent that is known to be in the present log."""
        self.append_time = False
        """The log sets the timestamps (``message.timestamp.type=LogAppendTime``)."""
        self.remembered = True
        """The batch that left last is recent enough that the broker keeps the producer."""
        self._remembered_from: i64 = 0
        """Timestamps from here on are recent enough."""
        self.log: i64 = 0
        """The number of the partition's log: it counts each new one."""
        self.by_name = False
        """A request has named the topic by name and not by id: it may reach an unknown log."""
        self._new_from: i64 = 0
        """Batches sent to logs before this one cannot be in the present log."""
        self._gaps_before: i64 = 0
        """Batches sent to logs before this one may be missing although later ones are in the present log: the requests
        named the topic, so the log that they reached is unknown."""
        self._void = False
        """A batch of the present epoch was proven absent; those behind it are, too."""
        self._absent_from = _NOWHERE
        """The place of the first batch of the present epoch that has ended and is proven absent."""
        self._doubtful_until: float = 0.0
        """Until then an ended batch of the present epoch may still be on its way to the log."""
        self._late_until: float = 0.0
        """Until then an attempt to send a batch that has ended may still be on its way to the log."""

    def has_id(self) -> bool:
        """Whether there is a producer id for new batches."""
        return self._ids.current is not None

    def may_drain_new(self, max_timestamp: i64 = _NEW, created: float = 0.0, now: float = 0.0) -> bool:
        """Whether a batch with this newest timestamp, created then, may get its first sequence now."""
        ids = self._ids
        if not self.has_id():
            return False
        if ids.transactional and (not self.in_transaction() or (self.broken and self.identity == ids.current)):
            return False  # the next transaction has a new epoch, which resolves the doubt
        if max_timestamp < self._remembered_from and (
            self.unresolved or now < min(self._late_until, created + ids.patience)
        ):
            return False  # this batch would make the broker forget the earlier ones
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

    def stamp(self, batch: ProducerBatch, now: float, now_ms: i64) -> None:
        """Gives a batch without a sequence its identity and sequence; ``may_drain_new`` must hold.

        ``now_ms`` is the wall clock's time. In a transaction brokers forget no producer, whatever its timestamps are.
        """
        assert self._ids.current is not None
        self._remembered_from = _ALWAYS if self.append_time or self._ids.transactional else now_ms - REMEMBERED_MS
        self.remembered = batch.max_timestamp >= self._remembered_from
        if not self.remembered or (not self.unresolved and self._has_paused(now)):
            self.known_id = -1
        if self.identity is None:
            self.identity = self._ids.current
        elif self._ids.transactional:
            if self.identity != self._ids.current:
                self.identity = self._ids.current
                self.next_sequence = 0
        elif self.broken:
            self.identity = self._next_identity(self.identity, self._ids.current)
            self.next_sequence = 0
        if self.broken:
            self.broken = self._void = False
            self._doubtful_until = 0.0
            self._absent_from = _NOWHERE
        batch.producer_id, batch.producer_epoch = self.identity
        batch.base_sequence = self.next_sequence
        self.next_sequence = increment_sequence(self.next_sequence, batch.count)
        self.unresolved.append(batch)
        self._places.append(self._stamped)
        self._stamped += 1

    def sent_again(self, batch: ProducerBatch, now: float, now_ms: i64) -> None:
        """A batch that has its stamp goes out: the lowest unresolved one once more, or one that :meth:`may_follow`.
        This, too, may come after a pause."""
        self._remembered_from = _ALWAYS if self.append_time or self._ids.transactional else now_ms - REMEMBERED_MS
        self.remembered = batch.max_timestamp >= self._remembered_from
        paused = self._has_paused(now) and not any(one.in_flight for one in self.unresolved)
        if paused or not self.remembered:
            self.known_id = -1

    def _has_paused(self, now: float) -> bool:
        """Whether the broker may have forgotten the producer meanwhile."""
        return now - self._known_at > self._ids.known_for

    def _next_identity(self, mine: ProducerIdAndEpoch, current: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        if mine.producer_id != current.producer_id:
            return current
        return ProducerIdAndEpoch(mine.producer_id, mine.epoch + 1)

    def is_lowest(self, batch: ProducerBatch) -> bool:
        """Whether every batch before this one is resolved or set aside."""
        for one in self.unresolved:
            if not one.set_aside:
                return one is batch
        return False

    def may_follow(self, batch: ProducerBatch) -> bool:
        """Whether a stamped batch may be sent while others are under way, like a new one: it is a part of a refused
        batch, no broker has seen it, and all those before it are under way."""
        if batch.attempts > 0 or batch.maybe_appended or batch.max_timestamp < self._remembered_from:
            return False
        if self.broken or batch.producer_id != self.known_id:
            return False
        if sum([one.in_flight for one in self.unresolved]) >= self.window:
            return False  # some behind it were sent before it was split
        for place, one in enumerate(self.unresolved):
            if one is batch:
                return self._places[place] - self._places[0] < self.window
            if not one.in_flight:
                return False
        return False

    def set_aside(self, batch: ProducerBatch) -> bool:
        """Lets the batch behind the lowest one be sent before it, if there is one and it can show whether the lowest
        one is in the log.

        If the log has or takes the one behind, it has this one, too. If the log refuses all of them as out of order,
        it has none: it would recognise the last one that it has. By name this proves nothing, since an unknown log
        could take the one behind; and the parts of a batch are not recognised.
        """
        place = self.unresolved.index(batch)
        if self.by_name or batch.reshaped or place + 1 == len(self.unresolved):
            return False
        batch.set_aside = True
        return True

    def put_back(self) -> bool:
        """Makes the batches set aside the lowest again: no later answer has shown anything. False if there are none."""
        found = False
        for batch in self.unresolved:
            found |= batch.set_aside
            batch.set_aside = False
        return found

    def shown_by(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Those set aside that the log has because it has this batch."""
        return [one for one in self.unresolved[: self.unresolved.index(batch)] if one.set_aside]

    def log_is_new(self, *, proven: bool, may_be_old: bool = False) -> None:
        """The partition has a new log, which knows no producer id yet; ``proven``: a new topic id shows it;
        ``may_be_old``: nothing shows it, as when brokers stop sending leader epochs.

        Batches sent under the old id are not in the new log. A transaction keeps its stamps: it has one epoch only.
        """
        self.known_id = -1
        self.log += 1
        self.put_back()
        if self.by_name and not may_be_old:
            self._gaps_before = self._stamped
        if not proven or self.by_name or self._ids.transactional:
            return
        self._new_from = self.log
        if self.unresolved:
            self.break_off()
            self._unstamp_waiting()

    def is_void(self, batch: ProducerBatch) -> bool:
        """Whether a stamped batch needs a new stamp, because it is proven absent.

        A log accepts a batch behind one that it has not got only if it is new. Requests that name topics by their ids
        do not reach an unknown log.
        """
        return batch.log < self._new_from or (self._void and not (self.by_name and batch.maybe_appended))

    def may_be_left_out(self, batch: ProducerBatch) -> bool:
        """Whether the present log may have batches behind this one without having this one."""
        return self._places[self.unresolved.index(batch)] < self._gaps_before

    def proves_absence(self, batch: ProducerBatch, now: float) -> bool:
        """Whether a broker that misses sequences before the lowest unresolved batch proves that no attempt to send it
        is, or will be, in the log.

        It is absent if a batch before it is. Otherwise the broker would have recognised it as the producer's last
        batch, unless it is part of a batch that may be in the log as a whole, or another one may be in the log behind
        it: a broker remembers several batches of a producer, but only the last of them after a restart. And unanswered
        attempts may still arrive; they would be accepted after an earlier batch that may still arrive.
        """
        if not batch.maybe_appended or self._absent_from < self._places[0]:
            return True
        if batch.reshaped or self.may_still_arrive(batch, now):
            return False
        if self._stamped - self._places[0] > len(self.unresolved):
            return False  # one that was stamped after it has ended
        behind = self.unresolved[self.unresolved.index(batch) + 1 :]
        return not any(one.maybe_appended or one.in_flight for one in behind)

    def may_still_arrive(self, batch: ProducerBatch, now: float) -> bool:
        """Whether an unanswered attempt may still be accepted, behind one of an earlier batch."""
        return now < self.arrives_until(batch)

    def arrives_until(self, batch: ProducerBatch) -> float:
        """When ``may_still_arrive`` ends."""
        return min(self._doubtful_until, batch.arrives_until)

    def resolve(self, batch: ProducerBatch) -> None:
        """The log has the batch's sequences."""
        self._remove(batch)
        if batch.arrives_until > self._late_until:  # a comparison costs no call
            self._late_until = batch.arrives_until
        if batch.log != self.log or batch.max_timestamp < self._remembered_from:
            return
        self.known_id = batch.producer_id
        self._known_at = batch.sent_at

    def unanswered(self) -> None:
        """An attempt may arrive late. In the next transaction under the same epoch it could come before its batches."""
        self._ids.in_doubt = True

    def interrupted(self) -> None:
        """A batch must be sent again: until one is appended, the broker may forget the producer."""
        self.known_id = -1

    def break_off(self) -> None:
        """Opens a gap, as when a batch on the wire is given up: no new batch until all unresolved ones have ended."""
        self.broken = True
        if self.identity == self._ids.current:
            self._ids.in_doubt = True

    def abandon(self, batch: ProducerBatch) -> None:
        """The batch has ended, and its sequences may or may not be used: opens a gap.

        A broker may accept a moment later what it refused for its content: limits are raised, and time passes.
        """
        self.break_off()
        self._late_until = max(self._late_until, batch.arrives_until)
        if not batch.maybe_appended:
            self._absent_from = min(self._absent_from, self._places[self.unresolved.index(batch)])
        else:
            self._doubtful_until = max(self._doubtful_until, batch.arrives_until)
            if batch.max_timestamp < self._remembered_from:
                self.known_id = -1
        self._remove(batch)

    def split(self, batch: ProducerBatch, children: list[ProducerBatch]) -> None:
        """Its children take the batch's place, with its sequences; each takes a place in the window."""
        place = self.unresolved.index(batch)
        more = len(children) - 1
        first = self._places[place]
        self.unresolved[place : place + 1] = children
        self._places[place:] = [*range(first, first + more + 1), *(after + more for after in self._places[place + 1 :])]
        self._stamped += more
        if first < self._absent_from < _NOWHERE:
            self._absent_from += more

    def unstamp(self, batch: ProducerBatch, *, in_known_log: bool = False) -> None:
        """The batch is proven absent and becomes like new. So do waiting batches behind it; those under way follow
        later. ``in_known_log``: it is certain that no unknown log has the name and these batches."""
        self.break_off()
        self._void = True
        self._take_stamp(batch)
        self._unstamp_waiting(in_known_log=in_known_log)

    def _unstamp_waiting(self, *, in_known_log: bool = False) -> None:
        for batch in tuple(self.unresolved):
            if not batch.in_flight and (in_known_log or self.is_void(batch)):
                self._take_stamp(batch)

    def _take_stamp(self, batch: ProducerBatch) -> None:
        self._remove(batch)
        batch.producer_id = batch.producer_epoch = batch.base_sequence = -1
        batch.header = b""
        self._late_until = max(self._late_until, batch.arrives_until)
        batch.maybe_before |= batch.maybe_appended
        batch.maybe_appended = batch.reshaped = batch.set_aside = False
        batch.arrives_until = 0.0

    def _remove(self, batch: ProducerBatch) -> None:
        place = self.unresolved.index(batch)
        del self.unresolved[place], self._places[place]
        if self.broken and not self.unresolved and self.identity is not None and self.identity.epoch >= MAX_EPOCH:
            self._ids.used_up(self.identity)
