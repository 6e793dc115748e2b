"""Hands records over from threads to the producer's event loop.

A thread puts a record into a queue. The first thread to do so since the loop last looked wakes the loop: one call for
all records that arrive before it looks. That makes ``send`` cheap, because waking is a system call, and each time one
thread would wait for the other.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from aioproducer.errors import DeliveryError, IllegalStateException, KafkaError, Outcome
from aioproducer.producer.accumulator.delivery import Delivery as LoopDelivery
from aioproducer.producer.accumulator.produce_result import WHOLE
from aioproducer.producer.parking.parked_record import PARKED_COST
from aioproducer.producer.producer import KafkaProducer
from aioproducer.types import Headers

if TYPE_CHECKING:
    from aioproducer.sync.delivery import Delivery

MOST: Final = 1000
"""Records that may be on their way before threads wait …"""

LARGE: Final = 2048
"""… and the most bytes of key and value that each of them may have; a larger one is worth a separate call."""

Record = tuple[Any, Any, Any, int | None, int | None, Headers | None]
"""Topic, value, key, partition, timestamp and headers: all immutable, and checked."""


@final
class Waiter:
    """A thread that waits for a record, with the interface of a future that ProduceResult expects."""

    __slots__ = ("left", "told")

    def __init__(self) -> None:
        self.told = threading.Event()
        self.left = False
        """Nobody waits any more, so a failure goes to the log."""

    def done(self) -> bool:
        return self.left

    def set_result(self, _: Any) -> None:
        self.told.set()

    def set_exception(self, _: BaseException) -> None:
        self.told.set()


class Handover:
    """One per producer that runs. ``rung``, ``full`` and ``queue`` are looked at by every ``send``."""

    def __init__(self, producer: KafkaProducer[Any, Any], loop: asyncio.AbstractEventLoop) -> None:
        self.queue: deque[tuple[Delivery, Record]] = deque()
        self.rung = False
        """The loop has been told that there is something, and has not looked yet."""
        self.full = False
        """The producer has no memory for what has come, or it waits for a serializer: threads wait."""
        self.over = threading.Event()
        """The loop has ended, or is in another process: nothing is taken any more."""
        self.thread = threading.get_ident()
        """The loop's: this is made there."""
        self.waiters: set[Waiter] = set()
        config = producer.config
        # Records on their way must fit into the parking lot in case there is no memory for any of them.
        self.most = max(1, min(MOST, config.parked_memory // (LARGE + PARKED_COST)))
        self.patience = config.max_block_ms / 1000
        self._producer = producer
        self._loop = loop
        self._serialized = producer._hooks.serializes
        self._room = threading.Condition()

    # From threads

    def ring(self) -> None:
        """Has the loop look."""
        try:
            self.rung = True
            if not self.call_soon(self.take):
                self.refuse_the_rest()
        except BaseException:
            self.rung = False  # a signal's handler has raised, maybe before the loop was told: whoever comes next rings
            raise

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> bool:
        """Makes the loop call something, after what was handed over before; False if the loop has ended."""
        if not self.over.is_set():
            try:
                self._loop.call_soon_threadsafe(function, *arguments)
            except RuntimeError:  # it is closed, and end() is on its way
                self.over.wait()
            else:
                return True
        return False

    def on_loop(self) -> bool:
        """Whether this is the loop's own thread, which may not wait for itself."""
        return threading.get_ident() == self.thread

    def wait_for_room(self) -> None:
        """Holds a thread up until there is room for another record, at most max.block.ms."""
        if self.on_loop():
            return
        with self._room:
            self._room.wait_for(self._has_room, self.patience)

    def _has_room(self) -> bool:
        return self.over.is_set() or (not self.full and len(self.queue) < self.most)

    # On the loop

    def take(self) -> None:
        """Sends what has been handed over so far."""
        self.rung = False  # first: whoever comes from now on has to ring again
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
            return producer._send_otherwise(topic, value, key, partition, timestamp_ms, headers, serialize=False)
        return producer.send(topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers)

    def _refuse(self, delivery: Delivery, record: Record, error: Exception) -> None:
        """Nobody is there to be raised to: it is told by the delivery, and by the log, as nobody may ask that."""
        delivery.refused(error)
        cause = error if isinstance(error, KafkaError) else KafkaError(f"{type(error).__name__}: {error}")
        topic, partition = record[0], -1 if record[3] is None else record[3]
        ended = DeliveryError.of(cause, Outcome.NOT_SENT, (topic, partition))
        self._producer._failures.failed(topic, partition, 1, ended, self._loop.time())
        self._producer._admission.missing(cause)

    def _look_for_memory(self) -> None:
        """Lets threads go on, or makes them wait until the records that now wait in line have been placed."""
        lot = self._producer._lot
        waiting = lot.memory if len(lot.memory) > 0 else lot.serializing
        self.full = len(waiting) > 0
        if self.full:
            waiting.last().result.add_waiter(WHOLE, self)
        else:
            self._wake()

    def _wake(self) -> None:
        with self._room:
            self._room.notify_all()

    # As the result of the last record that waits wants to see it, which is a future's face

    def done(self) -> bool:
        return False

    def set_result(self, _: None) -> None:
        self._loop.call_soon(self._look_for_memory)  # not amid the placing of others

    # Its end

    def end(self) -> None:
        """The loop has ended; records that came too late are refused."""
        self.over.set()
        self.thread = 0  # another thread may have its number now
        self.refuse_the_rest()
        self._wake()
        for waiter in list(self.waiters):  # those that the loop was not told of in time
            waiter.told.set()

    def abandon(self) -> None:
        """This process is a fork, and the loop is in the other one: locks may be held by threads that are not here."""
        self._room = threading.Condition()
        self.over = threading.Event()
        self.over.set()
        self.thread = 0
        self.queue.clear()

    def refuse_the_rest(self) -> None:
        """Ends the deliveries of records that no loop will ever take."""
        self.rung = False
        while True:
            try:
                delivery, _ = self.queue.popleft()
            except IndexError:
                return
            delivery.refused(IllegalStateException("the producer is closed; make a new one"))
