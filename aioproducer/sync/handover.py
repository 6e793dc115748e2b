"""Passes records from threads to the producer's event loop.

A thread puts a record into a queue. The first thread to do so since the loop last drained the queue wakes the loop,
once for all records that arrive before the next drain. That makes ``send`` cheap: each wake is a system call and makes
one thread wait for the other.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, final

from aioproducer.errors import DeliveryError, IllegalStateException, KafkaError, Outcome
from aioproducer.producer.delivery.delivery import Delivery as LoopDelivery
from aioproducer.producer.delivery.produce_result import WHOLE
from aioproducer.producer.parking.parked_record import PARKED_COST
from aioproducer.producer.producer import KafkaProducer, core_of, hooks_of
from aioproducer.types import Headers, ProducerRecord

MOST: Final = 1000
"""Records that may be on their way before threads wait …"""

LARGE: Final = 2048
"""… and the most bytes of key and value that each of them may have; a larger one is worth a separate call."""

Record = tuple[Any, Any, Any, int | None, int | None, Headers | None]
"""Topic, value, key, partition, timestamp and headers: all immutable, and checked."""


class Handed(Protocol):
    """The delivery of a record, as the loop ends its way here."""

    def placed(self, delivery: LoopDelivery) -> None:
        """The producer has accepted the record."""

    def refused(self, error: Exception) -> None:
        """The producer has refused the record."""


@final
class Waiter:
    """A thread that waits for a record, with the interface of a future that ProduceResult expects."""

    __slots__ = ("ended", "left")

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.left = False
        """Ends the wait: a failure is then logged."""

    def done(self) -> bool:
        return self.left

    def set_result(self, _: Any) -> None:
        self.ended.set()

    def set_exception(self, _: BaseException) -> None:
        self.ended.set()


class Handover:
    """One per running producer. Every ``send`` reads ``rung``, ``full`` and ``queue``."""

    def __init__(self, producer: KafkaProducer[Any, Any], loop: asyncio.AbstractEventLoop) -> None:
        self.queue: deque[tuple[Handed, Record]] = deque()
        self.rung = False
        """The loop was woken and has not drained the queue yet."""
        self.full = False
        """Records wait for memory or for a serializer: threads wait, too."""
        self.over = threading.Event()
        """The loop has ended or is in another process: records are refused."""
        self.thread = threading.get_ident()
        """The loop's: this is made there."""
        self.waiters: set[Waiter] = set()
        config = producer.config
        # Records in the queue must fit into the parking lot, in case there is no memory for any of them.
        self.most = max(1, min(MOST, config.parked_memory // (LARGE + PARKED_COST)))
        self.patience = config.max_block_ms / 1000
        self._producer = producer
        self._loop = loop
        self._serialized = hooks_of(producer).serializes
        self._room = threading.Condition()

    # From threads

    def ring(self) -> None:
        """Wakes the loop to drain the queue."""
        try:
            self.rung = True
            if not self.call_soon(self.take):
                self.refuse_the_rest()
        except BaseException:
            self.rung = False  # a signal handler has raised, maybe before the wake: the next record rings again
            raise

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> bool:
        """Makes the loop call a function, after all records handed over before; False if the loop has ended."""
        if not self.over.is_set():
            try:
                self._loop.call_soon_threadsafe(function, *arguments)
            except RuntimeError:  # it is closed, and end() is on its way
                self.over.wait()
            else:
                return True
        return False

    def on_loop(self) -> bool:
        """Whether this is the loop's own thread, which must not wait for itself."""
        return threading.get_ident() == self.thread

    def wait_for_room(self) -> None:
        """Blocks a thread until there is room for another record, at most max.block.ms."""
        if self.on_loop():
            return
        with self._room:
            self._room.wait_for(self._has_room, self.patience)

    def _has_room(self) -> bool:
        return self.over.is_set() or (not self.full and len(self.queue) < self.most)

    # On the loop

    def take(self) -> None:
        """Sends the records handed over so far."""
        self.rung = False  # first: a record that comes from now on must ring again
        queue = self.queue
        for _ in range(len(queue)):
            delivery, record = queue.popleft()
            try:
                delivery.placed(self._send(*record))
            except Exception as error:
                self._refuse(delivery, record, error)
        if not self.full:
            self._look_for_memory()

    def _send(
        self, topic: str, value: Any, key: Any, partition: int | None, timestamp_ms: int | None, headers: Headers | None
    ) -> LoopDelivery:
        producer = self._producer
        if self._serialized:
            record = ProducerRecord(topic, value, key, partition, timestamp_ms, headers)
            return core_of(producer).entry.send(record, serialize=False)
        return producer.send(topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers)

    def _refuse(self, delivery: Handed, record: Record, error: Exception) -> None:
        """There is no caller to raise to, so the delivery reports the error; it is also logged, in case nobody asks."""
        delivery.refused(error)
        cause = error if isinstance(error, KafkaError) else KafkaError(f"{type(error).__name__}: {error}")
        topic, partition = record[0], -1 if record[3] is None else record[3]
        ended = DeliveryError.of(cause, Outcome.NOT_SENT, (topic, partition))
        core = core_of(self._producer)
        core.failures.failed(topic, partition, 1, ended, self._loop.time())
        core.admission.missing(cause)

    def _look_for_memory(self) -> None:
        """Unblocks threads, or makes them wait until the records now in line have been placed."""
        lot = core_of(self._producer).lot
        waiting = lot.memory if len(lot.memory) > 0 else lot.serializing
        self.full = len(waiting) > 0
        if self.full:
            waiting.last().result.add_waiter(WHOLE, self)
        else:
            self._wake()

    def _wake(self) -> None:
        with self._room:
            self._room.notify_all()

    # The methods of a future, as the result of the last waiting record expects them

    def done(self) -> bool:
        return False

    def set_result(self, _: None) -> None:
        self._loop.call_soon(self._look_for_memory)  # not while others are being placed

    # Its end

    def end(self) -> None:
        """Refuses the records that came too late, when the loop has ended."""
        self.over.set()
        self.thread = 0  # another thread may have its number now
        self.refuse_the_rest()
        self._wake()
        for waiter in list(self.waiters):  # those that missed the loop's last drain
            waiter.ended.set()

    def abandon(self) -> None:
        """Called in a fork, whose parent has the loop: threads that do not exist here may hold locks."""
        self._room = threading.Condition()
        self.over = threading.Event()
        self.over.set()
        self.thread = 0
        self.queue.clear()

    def refuse_the_rest(self) -> None:
        """Ends the deliveries of records that no loop will ever send."""
        self.rung = False
        while True:
            try:
                delivery, _ = self.queue.popleft()
            except IndexError:
                return
            delivery.refused(IllegalStateException("the producer is closed; make a new one"))
