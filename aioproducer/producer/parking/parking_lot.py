"""Records that could not be appended at once, in the order of their arrival.

A record waits for metadata (its topic is unknown, or the partition it names) or for memory. Before that it may wait for
its serializers; then all later records queue behind it. Records of ``send``, whose callers may await the delivery, and
of ``enqueue`` share the same queues. An ``enqueue`` caller waits on its own ``asyncio.Condition``, as each waiting
thread in Kafka's BufferPool does. Records are placed synchronously, in order, the moment memory is freed or metadata
arrives, before any caller is notified: a newcomer finds the queue not empty and joins its end, and a caller that is
cancelled after its record was placed loses nothing, as the record is in the accumulator.

An awaited record blocks its caller, so only ``max.block.ms`` bounds it. An unawaited record counts in
``parked.memory``. While ``send`` runs, it cannot know which of the two its record will be. So a record without room is
on trial: it fails when its delivery is dropped, or after ``TRIAL`` turns of the loop, unless a task awaits it by then.

No asyncio here: the Sender notifies. Before metadata has come, and while memory is short, every record passes here.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final, final

from aioproducer.errors import (
    BufferExhaustedException,
    DeliveryError,
    IllegalStateException,
    KafkaError,
    Outcome,
    PartitionerException,
    TimeoutException,
)
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.batches.buffer_pool import BufferPool
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.diagnosis.ledger import Ledger, in_words
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.diagnosis.wording import counted, duration
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.waiting_line import WaitingLine
from aioproducer.timing.time_slice import TimeSlice

TRIAL: Final = 4
"""Turns of the loop that a record without room stays on trial.

A task starts in the turn after its creation, and may then only create the next task.
"""

PER_NEWCOMER: Final = 2
"""For each newcomer so many trials end, and so many records are placed: with two, those that wait become fewer."""


def serializer_at_work(record: ParkedRecord, now: float) -> str:
    """The serializer that holds up the line, given the line's first record."""
    serialization = record.serialization
    if serialization is None or serialization.began_at is None:
        return "serializer, whose turn has not come"
    return f"{serialization.what}_serializer, which has been at work for {duration(now - serialization.began_at)}"


@final
class Failing:
    """Why parked records fail, turn by turn, and which."""

    def __init__(self, error: KafkaError) -> None:
        self.error = error
        self.aborted = False
        self.newest = 0
        """The number of the newest of them."""


@final
class _Refused:
    """The records for a topic that will never have metadata, and why."""

    def __init__(self, error: KafkaError, line: WaitingLine) -> None:
        self.error = error
        self.line = line


@final
class ParkingLot:
    """The parked records, by what they wait for. ``bytes`` counts the unawaited ones: a waiting caller holds its
    own.

    ``on_failed(error)`` is called for every record that fails here or is withdrawn; ``wake()`` when records were placed
    or have failed outside the Sender's pass, or are left to be placed; ``on_serializing()`` whenever records have
    joined or left the line for serializers. ``within_serializer()`` is whether the caller is the serializer at work.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        capacity: int,
        failures: FailureLog,
        metrics: ProducerMetrics,
        *,
        on_failed: Callable[[KafkaError], object],
        wake: Callable[[], object],
        on_serializing: Callable[[], object],
        within_serializer: Callable[[], bool],
    ) -> None:
        accumulator.audience.lot = self
        self._accumulator = accumulator
        self._failures = failures
        self._metrics = metrics
        self._on_failed = on_failed
        self._wake = wake
        self._on_serializing = on_serializing
        self._within_serializer = within_serializer
        self.capacity = capacity
        self.bytes = 0
        self._parked: OrderedDict[ProduceResult, ParkedRecord] = OrderedDict()
        """In the order of arrival, and so of expiry. Finding the first of many takes constant time."""
        # Each of them is also in one of these:
        self.serializing = WaitingLine()
        """The serializers of the first record are at work; the others wait for their turn."""
        self.memory = WaitingLine()
        self.metadata: dict[str, WaitingLine] = {}
        self._refused: dict[str, _Refused] = {}
        """By topic; they fail in turns of the loop."""
        self.settled: deque[ParkedRecord] = deque()
        """Records with a Condition that were placed or have failed, for the Sender to notify."""
        self.paused = False
        """There may be memory for waiting records: placing has stopped only to give the loop a turn."""
        self._trial = WaitingLine()
        """Records of ``send`` without room that no task awaits yet."""
        self._dropped: deque[ProduceResult] = deque()
        """Those of them whose delivery was dropped. Filled by finalizers, which may run in any thread."""
        self._turns = 0
        """The turns of the loop so far, counted only while records are on trial."""
        self._counting = False
        self._deciding = TimeSlice(accumulator.loop)
        self._expiring = TimeSlice(accumulator.loop)
        self._placing_slice = TimeSlice(accumulator.loop)
        self._placing = False
        self.failing: Failing | None = None
        """While records fail in turns: until the last of them has, nothing is placed."""
        self._chosen = False
        """A record has come whose partition the user's partitioner chooses."""
        self._choosing = False
        """The user's partitioner is asked about records that are about to move."""
        self._count = 0
        """Records parked so far, each of which has the next number."""
        self._flushes: deque[tuple[int, int, Any]] = deque()
        """For each flush that waits, how many records had been parked and how many batches joined when it began, and
        its future."""
        self._joined: list[ProduceResult] = []
        """The batches that records have joined for which a flush waits, since the first of these flushes began."""
        self._forgotten = 0
        """How many were joined before those."""
        self._shut = True
        self._waited = (False, False)
        self._serialized = False

    def open(self) -> None:
        """Sends records straight to the accumulator from now on, unless others wait for memory."""
        self._shut = False
        self._gate()

    def shut(self) -> None:
        """Sends every record through admission from now on, which refuses it."""
        self._shut = True
        self._gate()

    def _gate(self) -> None:
        waiting = (len(self.memory) > 0, len(self.metadata) > 0)
        serializing = len(self.serializing) > 0
        self._accumulator.detour = self._shut or waiting[0] or serializing or self._choosing
        if not waiting[0]:
            self.paused = False
        if waiting != self._waited:
            self._waited = waiting
            now = self._accumulator.loop.time()
            self._metrics.memory_wait.set_waiting(waiting[0], now)
            self._metrics.metadata_wait.set_waiting(waiting[1], now)
        if serializing or self._serialized:
            self._serialized = serializing
            self._on_serializing()

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, record: ParkedRecord) -> None:
        """Parks a newcomer behind all others."""
        self._count += 1
        record.number = self._count
        record.result.parked = True
        self._parked[record.result] = record
        if record.condition is None:
            if self._full_for(record):
                self._try(record)
            else:
                self._charge(record)
        if record.serialization is not None or len(self.serializing) > 0:
            self.serializing.add(record)
        else:
            self._line_up(record)
        # Not before: callbacks may send, and what they send goes behind. They end no trials: each would call the next.
        if not self._within_callback():
            for _ in range(PER_NEWCOMER):
                self._decide_dropped()
                if self._trial_is_over():
                    self._end_trial(self._trial.first())
        self._place_some()
        self._gate()

    def _line_up(self, record: ParkedRecord) -> None:
        if record.choose is not None:
            self._chosen = True
        if self._has_metadata(record):
            self.memory.add(record)
        else:
            self._wait_for_metadata(record)

    def serialized(self, record: ParkedRecord, size: int) -> None:
        """Moves a serialized record on: now it waits for metadata or memory."""
        self.serializing.remove(record)
        if record.charged:
            self.bytes += size - record.size
        record.size = size
        record.serialization = None
        record.serialized_at = record.moved_at = self._accumulator.loop.time()
        self._line_up(record)
        self.place()
        if record.charged and self.bytes > self.capacity:
            self._no_charge(record)
            self._nobody_awaits(record)

    def check_awaitable(self, record: ParkedRecord) -> None:
        """IllegalStateException if the serializer at work would await a record that waits for it."""
        if record in self.serializing and self._within_serializer():
            raise IllegalStateException(
                f"a serializer awaits a record for {record.topic!r}, which must wait until that serializer has "
                "finished: call send() there without awaiting it"
            )

    def _full_for(self, record: ParkedRecord) -> bool:
        return self.bytes + record.held > self.capacity

    def _charge(self, record: ParkedRecord) -> None:
        record.charged = True
        self.bytes += record.held

    def _no_charge(self, record: ParkedRecord) -> None:
        if record.charged:
            record.charged = False
            self.bytes -= record.held
        elif record in self._trial:
            self._trial.remove(record)

    def _wait_for_metadata(self, record: ParkedRecord) -> None:
        line = self.metadata.get(record.topic)
        if line is None:
            line = self.metadata[record.topic] = WaitingLine()
        line.add(record)

    def _has_metadata(self, record: ParkedRecord) -> bool:
        partitions = self._partitions(record.topic)
        if partitions == 0 or record.undecided():
            return False
        return record.partition is None or record.partition < partitions

    def _partitions(self, topic: str) -> int:
        """The number of the topic's partitions; 0 while they are unknown."""
        queues = self._accumulator.topics.get(topic)
        return 0 if queues is None else len(queues.queues)

    def records(self) -> list[ParkedRecord]:
        """Everything parked, oldest first."""
        return list(self._parked.values())

    @property
    def pool(self) -> BufferPool:
        """The memory that records wait for."""
        return self._accumulator.pool

    def metadata_arrived(self, topic: str) -> None:
        """Moves the topic's records that can be placed now into the line for memory, by age."""
        refused = self._decide(topic)
        waiting = self.metadata.pop(topic, None)
        if waiting is None:
            self._gate()
            return
        now = self._accumulator.loop.time()
        partitions = self._partitions(topic)
        left: list[ParkedRecord] = []
        moved: list[ParkedRecord] = []
        for record in waiting.records.values():  # may be very many, in one step
            partition = record.partition
            if partitions == 0 or (record.choose is not None if partition is None else partition >= partitions):
                left.append(record)
            else:
                record.moved_at = now
                moved.append(record)
        if len(left) > len(moved):  # the fewer change their line
            self.metadata[topic] = waiting
            for record in moved:
                waiting.remove(record)
                self.memory.add(record)
        else:
            for record in left:
                waiting.remove(record)
                self._wait_for_metadata(record)
            if len(self.memory) == 0:
                self.memory = waiting
            else:
                for record in waiting:
                    self.memory.add(record)
        for record in refused:
            if record.waiting():
                self._take_out(record)
        self._gate()
        self._fail_each([(record, error) for record, error in refused.items() if record.waiting()])

    def _decide(self, topic: str) -> dict[ParkedRecord, KafkaError]:
        """Calls the user's partitioner for records without a choice; returns the errors of those it refuses.

        It may send records itself, so nothing is moved meanwhile, and those go behind.
        """
        refused: dict[ParkedRecord, KafkaError] = {}
        waiting = self.metadata.get(topic)
        if waiting is None or not self._chosen:
            return refused
        undecided = [record for record in waiting.records.values() if record.undecided()]
        if not undecided:
            return refused
        undecided.sort(key=_number)
        self._choosing = True
        self._gate()
        try:
            for record in undecided:
                if record.choose is not None and record.partition is None and record.waiting():
                    try:
                        record.partition = record.choose()
                    except PartitionerException as error:
                        refused[record] = error
        finally:
            self._choosing = False
        return refused

    def place(self) -> None:
        """Places records from the head while there is memory, for one turn; the next wake continues."""
        if self._placing or self.failing is not None:
            return  # a partitioner called below has sent a record, or what is parked is to fail
        self._placing = True
        try:
            self._place_from_the_head()
        finally:
            self._placing = False
        self._gate()

    def _place_from_the_head(self) -> None:
        self.paused = False
        self._placing_slice.begin()
        while len(self.memory) > 0 and self._place_first():
            if self._placing_slice.over():
                if len(self.memory) > 0:
                    self.paused = True
                    self._wake()
                break

    def _place_some(self) -> None:
        """Places PER_NEWCOMER records if placing is paused. So the line becomes shorter with each record that joins."""
        if self._placing or self.failing is not None:
            return
        self._placing = True
        try:
            for _ in range(PER_NEWCOMER):
                if not self.paused or len(self.memory) == 0:
                    break
                self.paused = self._place_first()
        finally:
            self._placing = False

    def _place_first(self) -> bool:
        """Places the first record of the line, or moves it to the one in which it has to wait. False if it waits for
        memory."""
        record = self.memory.first()
        placed = self._accumulator.place(
            record.topic,
            record.value,
            record.key,
            record.partition,
            record.timestamp_ms,
            record.headers,
            record.size,
        )
        if placed is not None:
            self.memory.remove(record)
            record.result.forward([(0, placed._result, placed._index)])
            if self._flushes and record.number <= self._flushes[-1][0] and placed._result not in self._joined[-1:]:
                self._joined.append(placed._result)
            if record.intercepted is not None:
                placed._result.intercept(placed._index, record.headers or ())
            self._leave(record)
        elif self._has_metadata(record):
            return False
        elif record.choose is not None:
            self._choose_again(record)
        else:  # its topic was created anew, with fewer partitions
            self.memory.remove(record)
            self._wait_for_metadata(record)
        return True

    def _choose_again(self, record: ParkedRecord) -> None:
        """The topic was created anew, without the partition that the user's partitioner has chosen for the record.

        The record keeps its turn: those behind it may be for the partition that is chosen now.
        """
        try:
            record.partition = None if record.choose is None else record.choose()
        except PartitionerException as error:
            if record.waiting():
                self._take_out(record)
                self._fail_each([(record, error)])
            return
        if record.waiting() and not self._has_metadata(record):
            self.memory.remove(record)
            self._wait_for_metadata(record)

    def withdraw(self, record: ParkedRecord) -> None:
        """Withdraws a record that no caller wants any more; it will never be in the log."""
        if not record.waiting():
            return
        missing = "a serializer" if record in self.serializing else "metadata or memory"
        self._take_out(record)
        self._leave(record)
        error = KafkaError(
            f"the record for {record.topic!r} was withdrawn while it waited for {missing}: "
            "the task that awaited it was cancelled"
        )
        self._on_failed(error)  # its transaction must not commit without it
        record.fail(DeliveryError.of(error, Outcome.NOT_SENT, record.destination()))
        self.place()  # the next one may need less
        self._wake()

    def adopt(self, record: ParkedRecord) -> None:
        """Turns a record of ``enqueue`` that was never awaited into one of ``send``."""
        if record.condition is None:
            return
        error = record.result.error
        if record.waiting():
            record.condition = None
            self._nobody_awaits(record)
        elif error is not None and not record.result.error_seen:
            record.result.error_seen = True
            self._failures.failed(*record.destination(), 1, error, self._accumulator.loop.time())

    def _nobody_awaits(self, record: ParkedRecord) -> None:
        """Counts the record in ``parked.memory``, or fails it if there is no room."""
        if not self._full_for(record):
            self._charge(record)
            return
        error = BufferExhaustedException(
            f"{self.bytes} bytes of records that nobody awaits are waiting already, and {record.held} "
            f"more do not fit in parked.memory={self.capacity}: await send() or enqueue(), which waits for room"
        )
        self.give_up(record, error)

    def give_up(self, record: ParkedRecord, error: KafkaError) -> None:
        """Fails a record that waits."""
        self._take_out(record)
        self._fail_each([(record, error)])
        self.place()  # the next one may need less
        self._wake()

    # the result knows the waiters of a record of send

    def awaited(self, result: ProduceResult) -> None:
        """One more task awaits the record."""
        record = self._parked[result]
        self.check_awaitable(record)
        record.awaiters += 1
        self._no_charge(record)

    def left(self, result: ProduceResult) -> None:
        """A task that awaited the record was cancelled. If it was the last, the record is withdrawn."""
        record = self._parked[result]
        if record.awaiters == 1 and not result.has_callbacks():
            self.withdraw(record)
        else:
            self.released(result)

    def released(self, result: ProduceResult) -> None:
        """One task fewer awaits the record, which may still be sent."""
        record = self._parked[result]
        record.awaiters -= 1
        if record.awaiters == 0:
            self._nobody_awaits(record)

    def dropped(self, result: ProduceResult) -> None:
        """The record's delivery was dropped. Called at any point of any code, in any thread."""
        self._dropped.append(result)

    def _try(self, record: ParkedRecord) -> None:
        record.undecided_since = self._turns
        self._trial.add(record)
        if not self._counting:
            self._counting = True
            self._accumulator.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """Ends the trials whose time is over, for one turn; the rest later."""
        self._turns += 1
        self._deciding.begin()
        while len(self._dropped) > 0 or self._trial_is_over():
            if len(self._dropped) > 0:
                self._decide_dropped()
            else:
                self._end_trial(self._trial.first())
            if self._deciding.over():
                break
        self._counting = len(self._trial) > 0 or len(self._dropped) > 0
        if self._counting:
            self._accumulator.loop.call_soon(self._next_turn)

    def _within_callback(self) -> bool:
        hooks = self._accumulator.audience.hooks
        return hooks is not None and hooks.depth > 0

    def _trial_is_over(self) -> bool:
        """Whether the time of the oldest trial is over."""
        return len(self._trial) > 0 and self._trial.first().undecided_since + TRIAL <= self._turns

    def _decide_dropped(self) -> None:
        """Ends the trial of the first record whose delivery was dropped, if any."""
        if len(self._dropped) > 0:
            record = self._parked.get(self._dropped.popleft())
            if record is not None and record in self._trial:
                self._end_trial(record)

    def _end_trial(self, record: ParkedRecord) -> None:
        self._trial.remove(record)
        self._nobody_awaits(record)

    def _take_out(self, record: ParkedRecord) -> None:
        """Removes a waiting record from its queue."""
        line = self.metadata.get(record.topic)
        refused = self._refused.get(record.topic)
        if record in self.serializing:
            self.serializing.remove(record)
        elif line is not None and record in line:
            line.remove(record)
            if len(line) == 0:
                del self.metadata[record.topic]
        elif refused is not None and record in refused.line:
            refused.line.remove(record)
            if len(refused.line) == 0:
                del self._refused[record.topic]
        else:
            self.memory.remove(record)

    def refuse_topic(self, topic: str, error: KafkaError) -> None:
        """Has the records fail that wait for metadata of a topic that will never have any: ``expire`` fails them. The
        first error counts."""
        line = self.metadata.pop(topic, None)
        if line is None:
            return
        refused = self._refused.get(topic)
        if refused is None:
            self._refused[topic] = _Refused(error, line)
        else:
            for record in line:
                refused.line.add(record)
        self._gate()

    def fail_all(self, error: KafkaError, *, aborted: bool = False) -> None:
        """Fails everything parked. It also runs after bugs, so it does not rely on the queues."""
        self.failing = None
        records = self.records()
        self._parked.clear()
        self._tell_flushes()
        self.serializing = WaitingLine()
        self.memory = WaitingLine()
        self.metadata.clear()
        self._refused.clear()
        self._trial = WaitingLine()
        self.bytes = 0
        self._gate()
        self.settled += [record for record in records if record.condition is not None]
        for record in records:
            record.result.parked = False
        for record in records:
            if record.waiting():
                self._fail(record, error, aborted=aborted)

    def fail_in_turns(self, error: KafkaError, *, aborted: bool = False) -> None:
        """Has everything parked fail, oldest first, with ``fail_more``. Until then nothing is placed. The first error
        counts."""
        if self.failing is None:
            self.failing = Failing(error)
        self.failing.newest = self._count
        self.failing.aborted |= aborted

    def fail_more(self) -> bool:
        """Fails some of these records, for a turn of the loop. Returns whether some are left."""
        what = self.failing
        if what is None:
            return False
        self._expiring.begin()
        while what is not None:
            record = self._oldest()
            if record is None or record.number > what.newest:
                self.failing = None
                self.place()  # younger ones may have arrived
                return False
            self._take_out(record)
            self._leave(record)
            self._fail(record, what.error, aborted=what.aborted)
            what = self.failing  # None if a callback has failed all at once
            if self._expiring.over():
                break
        return what is not None

    def emptied(self) -> Any | None:
        """A future that is done when no record is parked any more of those that now are; None if none is. It has the
        batches that they have joined, and perhaps some that a few later ones have."""
        if not self._parked:
            return None
        waiter = self._accumulator.loop.create_future()
        self._flushes.append((self._count, self._forgotten + len(self._joined), waiter))
        return waiter

    def _oldest(self) -> ParkedRecord | None:
        for record in self._parked.values():
            return record
        return None

    def somebody_waits(self) -> bool:
        """Whether any record is parked."""
        return bool(self.memory.records or self.metadata or self.serializing.records or self._refused)

    def next_deadline(self) -> float | None:
        """When ``expire`` has something to do."""
        if self._refused:
            return 0.0
        oldest = self._oldest()
        return None if oldest is None else oldest.deadline

    def expire(self, now: float, no_metadata: Callable[[str, float], TimeoutException]) -> None:
        """Fails records of refused topics, and those that have waited for max.block.ms, for one turn; then places
        records while there is memory.

        ``no_metadata(topic, since)`` is the error for records that have waited for the topic's metadata since then.

        If some are left to fail, ``next_deadline`` stays in the past.
        """
        self._expiring.begin()
        newest = self._count  # of those there are: callbacks may send more
        at_work = self.serializing.first() if len(self.serializing) > 0 else None  # it may be the first to fail
        while (doomed := self._first_refused() or self._first_late(newest, now, at_work, no_metadata)) is not None:
            record, error = doomed
            self._take_out(record)
            self._leave(record)
            self._fail(record, error, aborted=False)
            if self._expiring.over():
                break
        self.place()

    def _first_refused(self) -> tuple[ParkedRecord, KafkaError] | None:
        for refused in self._refused.values():
            return refused.line.first(), refused.error
        return None

    def _first_late(
        self,
        newest: int,
        now: float,
        at_work: ParkedRecord | None,
        no_metadata: Callable[[str, float], TimeoutException],
    ) -> tuple[ParkedRecord, KafkaError] | None:
        """The oldest record, if its time is over: they are in order of age."""
        record = self._oldest()
        if record is None or record.number > newest or record.deadline > now:
            return None
        if at_work is not None and record in self.serializing:
            return record, self._not_serialized(record, at_work, now)
        if record in self.memory:
            return record, self._no_memory(record, now)
        return record, self._no_partition(record, now) or no_metadata(record.topic, record.serialized_at)

    def _not_serialized(self, record: ParkedRecord, at_work: ParkedRecord, now: float) -> TimeoutException:
        ledger = Ledger(record.parked_at)
        ledger.book(now, Reason.SERIALIZER.value)
        whose = "its" if record is at_work else f"an earlier record's, for {at_work.topic!r}:"
        error = TimeoutException(
            f"the record for {record.topic!r} was not serialized within max.block.ms "
            f"({(now - record.parked_at) * 1000:.0f} ms): it waited for {whose} {serializer_at_work(at_work, now)}"
        )
        error.ledger = ledger.entries()
        return error

    def _no_partition(self, record: ParkedRecord, now: float) -> TimeoutException | None:
        queues = self._accumulator.topics.get(record.topic)
        if queues is None or record.partition is None:
            return None
        ledger = Ledger(record.parked_at)
        ledger.book(now, Reason.PARTITION.value)
        error = TimeoutException(
            f"partition {record.partition} of topic {record.topic!r} did not exist for max.block.ms "
            f"({(now - record.parked_at) * 1000:.0f} ms); the topic has {counted(len(queues.queues), 'partition')}: "
            "add some, or send to another"
        )
        error.ledger = ledger.entries()
        return error

    def _no_memory(self, record: ParkedRecord, now: float) -> BufferExhaustedException:
        ledger = Ledger(record.parked_at)
        if record.serialized_at > record.parked_at:
            ledger.book(record.serialized_at, Reason.SERIALIZER.value)
        if record.moved_at > record.serialized_at:
            ledger.book(record.moved_at, Reason.METADATA.value)
        ledger.book(now, Reason.MEMORY.value)
        pool = self._accumulator.pool
        error = BufferExhaustedException(
            f"no memory for a record of {record.size} bytes for {record.topic!r} within max.block.ms "
            f"({(now - record.parked_at) * 1000:.0f} ms; {in_words(ledger.entries())}): "
            f"{pool.total - pool.available} of buffer.memory={pool.total} bytes hold records that are not delivered "
            "yet; send less at once, or raise buffer.memory"
        )
        error.ledger = ledger.entries()
        return error

    def _leave(self, record: ParkedRecord) -> None:
        self._no_charge(record)
        if record.condition is not None:
            self.settled.append(record)
        record.result.parked = False
        del self._parked[record.result]
        if self._flushes:
            self._tell_flushes()

    def _tell_flushes(self) -> None:
        """Ends the waits for records that are no longer parked."""
        oldest = self._oldest()
        while self._flushes and (oldest is None or oldest.number > self._flushes[0][0]):
            _, start, waiter = self._flushes.popleft()
            if not waiter.done():
                waiter.set_result(self._joined[start - self._forgotten :])
        needed = self._flushes[0][1] if self._flushes else self._forgotten + len(self._joined)
        del self._joined[: needed - self._forgotten]
        self._forgotten = needed

    def _fail_each(self, records: list[tuple[ParkedRecord, KafkaError]]) -> None:
        """Fails records already removed from the queues; callbacks may send, so all of them are uncounted first."""
        for record, _ in records:
            self._leave(record)
        for record, error in records:
            self._fail(record, error, aborted=False)

    def _fail(self, record: ParkedRecord, error: KafkaError, *, aborted: bool) -> None:
        where = record.destination()
        ended = DeliveryError.of(error, Outcome.NOT_SENT, where)
        try:
            self._on_failed(error)
            now = self._accumulator.loop.time()
            self._metrics.records_failed(record.topic, 1, now)
            if isinstance(error, BufferExhaustedException):
                self._metrics.buffer_exhausted(now)
            if record.condition is None and record.result.unobserved(1) > 0:
                self._failures.failed(*where, 1, ended, now)
        finally:
            record.fail(ended, aborted)


def _number(record: ParkedRecord) -> int:
    return record.number
