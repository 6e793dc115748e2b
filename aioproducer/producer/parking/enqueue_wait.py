"""Waits until a parked record is in the accumulator or has failed: how callers wait, and how they are notified.

Each caller has its own Condition, stored with its record. Nothing can be lost: the record is placed first, and its
caller is notified afterwards.
"""

from __future__ import annotations

import asyncio

from aioproducer.errors import IllegalStateException
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.timing.time_slice import TimeSlice


async def placed(lot: ParkingLot, record: ParkedRecord) -> None:
    """Returns when the record is in the accumulator, or has failed; it is withdrawn if the caller is cancelled.

    IllegalStateException, and withdrawn, if the caller is the serializer that the record waits for.
    """
    condition = record.condition
    try:
        lot.check_awaitable(record)
        async with condition:
            while record.waiting():
                await condition.wait()
    except (asyncio.CancelledError, IllegalStateException):
        lot.withdraw(record)
        raise


async def notify_settled(lot: ParkingLot, time_slice: TimeSlice) -> None:
    """Wakes callers whose records were placed or have failed, in order, until the time slice is over."""
    settled = lot.settled
    time_slice.begin()
    while settled:
        record = settled[0]
        async with record.condition:
            record.condition.notify_all()
        if settled and settled[0] is record:
            settled.popleft()  # not before: a caller not notified now is notified when the producer has failed
        if time_slice.over():
            return


async def notify_all_settled(lot: ParkingLot, time_slice: TimeSlice) -> None:
    """Wakes all callers, giving the loop its turns meanwhile."""
    while lot.settled:
        await notify_settled(lot, time_slice)
        await asyncio.sleep(0)
