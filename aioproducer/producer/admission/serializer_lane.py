"""Serializers that must be awaited: one at a time, in the order in which their records were sent.

So a serializer is called as if it were synchronous: never twice at once, and always for the next record. The first
look-up of a schema serves all records that wait behind it, and records leave in the order of their arrival.

A task of the producer awaits them, because ``send`` returns before, and its caller may never await the delivery. It
runs each serializer in the context of its ``send``. If a record leaves the line while its serializer is at work,
because its caller was cancelled or its time is over, the task is cancelled, and another one replaces it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from aioproducer.errors import KafkaError, SerializationException
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.producer.hooks.in_context import InContext
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.tasks.own_task import start_task
from aioproducer.timing.time_slice import TimeSlice

MOST_LEAVING: Final = 16
"""The limit of cancelled serializers that have not ended: at the limit no other one starts."""


class SerializerLane:
    """The task, while there are records in the line. ``serialized(record)`` moves its first record on."""

    def __init__(self, lot: ParkingLot, hooks: Hooks, serialized: Callable[[ParkedRecord], object]) -> None:
        self._lot = lot
        self._hooks = hooks
        self._serialized = serialized
        self._loop = asyncio.get_running_loop()
        self._slice = TimeSlice(self._loop)
        self._task: asyncio.Task[None] | None = None
        self._at_work: ParkedRecord | None = None
        """The record whose serializers the task awaits."""
        self._leaving: set[asyncio.Task[None]] = set()

    def look(self) -> None:
        """Cancels serializers of records that have left the line, and starts those of the first one in it."""
        line = self._lot.serializing
        if self._at_work is not None and self._at_work not in line:
            self._give_up()
        if len(line) > 0 and self._task is None and len(self._leaving) < MOST_LEAVING:
            self._task = start_task(self._run(), "aioproducer serializer")
            self._task.add_done_callback(self._ended)

    def _give_up(self) -> None:
        """Cancels the task without waiting for it; the serializer's result is discarded."""
        assert self._task is not None
        self._leaving.add(self._task)
        self._task.cancel()
        self._task = self._at_work = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._leaving.discard(task)
        if self._task is task:
            record, self._task, self._at_work = self._at_work, None, None
            if record is not None and record.waiting():
                why = "it was cancelled" if task.cancelled() else repr(task.exception())
                self._lot.give_up(record, KafkaError(f"the task that awaits serializers has ended: {why}"))
        self.look()

    def within(self) -> bool:
        """Whether the caller is the serializer at work."""
        return self._task is not None and asyncio.current_task() is self._task

    async def stopped(self, grace: float) -> None:
        """Returns when the cancelled serializers have ended, or after this many seconds."""
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=grace)

    async def _run(self) -> None:
        me = asyncio.current_task()
        self._slice.begin()
        while self._task is me and len(line := self._lot.serializing) > 0:
            record = line.first()
            await self._serialize(record)
            if self._task is me and self._slice.over():
                await asyncio.sleep(0)
                self._slice.begin()

    async def _serialize(self, record: ParkedRecord) -> None:
        """Removes the record from the line, unless it was given up meanwhile."""
        me = asyncio.current_task()
        serialization = record.serialization
        try:
            if serialization is not None:
                self._at_work = record
                serialization.began_at = self._loop.time()
                await InContext(serialization.finish(), serialization.context, self._hooks)
            if self._task is me:
                self._at_work = None
                self._serialized(record)
        except SerializationException as error:
            self._fail(me, record, error)
        except asyncio.CancelledError:
            what = "serializer" if serialization is None else f"{serialization.what}_serializer"
            self._fail(me, record, SerializationException(f"the {what} was cancelled, and not by its producer"))
            if me is not None and me.cancelling():  # this task was cancelled; otherwise the serializer's was
                raise
        except GeneratorExit:  # the loop was closed
            raise
        except BaseException as stop:
            self._fail(me, record, KafkaError(f"serialization was stopped by {type(stop).__name__}: {stop}"))
            self._loop.call_soon(_raise, stop)

    def _fail(self, me: asyncio.Task[None] | None, record: ParkedRecord, error: KafkaError) -> None:
        if self._task is me:
            self._at_work = None
            if record.waiting():
                self._lot.give_up(record, error)


def _raise(error: BaseException) -> None:
    raise error
