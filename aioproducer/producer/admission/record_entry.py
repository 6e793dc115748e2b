"""The slow path of ``send`` and ``enqueue``: records that cannot simply be appended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.admission.admission import Admission
from aioproducer.producer.admission.enqueued import enqueued
from aioproducer.producer.admission.enqueuing import Enqueuing
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import FORWARDED
from aioproducer.producer.parking.enqueue_wait import placed
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.types import ProducerRecord


class RecordEntry:
    """For callers in the producer's loop. ``serialize`` is False for keys and values that are bytes already."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, accumulator: RecordAccumulator, lot: ParkingLot, admission: Admission
    ) -> None:
        self._loop = loop
        self._accumulator = accumulator
        self._lot = lot
        self._admission = admission

    def send(self, record: ProducerRecord, *, serialize: bool = True) -> Delivery:
        """The record is in the accumulator, waits, or has failed."""
        admitted = self._admission.let_in(record, serialize=serialize)
        return admitted.delivery() if isinstance(admitted, ParkedRecord) else admitted

    def enqueue(self, record: ProducerRecord, *, serialize: bool = True) -> Coroutine[Any, Any, Delivery]:
        """The same; what is returned waits until the record is in the accumulator, or raises."""
        try:
            admitted = self._admission.let_in(record, asyncio.Condition, serialize=serialize)
        except Exception as error:
            forgotten = partial(self._admission.unread, record.topic, error)
            return Enqueuing(self._loop, partial(refuse, error), forgotten=forgotten)
        if isinstance(admitted, Delivery):
            return after_a_turn(admitted) if self._accumulator.must_yield else enqueued(admitted)
        return Enqueuing(
            self._loop,
            partial(self._placed, admitted),
            given_up=partial(self._lot.withdraw, admitted),
            forgotten=partial(self._lot.adopt, admitted),
        )

    async def _placed(self, record: ParkedRecord) -> Delivery:
        await placed(self._lot, record)
        if record.result.state != FORWARDED:
            raise record.result.raised(0)
        return record.delivery()


def after_a_turn(delivery: Delivery) -> Coroutine[Any, Any, Delivery]:
    """Returns the delivery after a turn of the loop."""
    return Enqueuing(None, partial(_after_a_turn, delivery))


async def _after_a_turn(delivery: Delivery) -> Delivery:
    await asyncio.sleep(0)
    return delivery


async def refuse(error: Exception) -> Delivery:
    """Raises the error to the caller who awaits."""
    raise error
