"""Waits until a parked record is in the accumulator or has failed: how callers wait, and how they are notified.

Each caller has its own Condition, stored with its record. Nothing can be lost: the record is placed first, and its
caller is notified afterwards.
"""

from __future__ import annotations

import asyncio

from aioproducer.errors import IllegalStateException
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.timing.turn import Turn


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


async def tell_settled(lot: ParkingLot, turn: Turn) -> None:
    """Wakes callers whose records were placed or have failed, in order, until the turn is over; then some are left."""
    settled = lot.settled
    turn.begin()
    while settled:
        record = settled[0]
        async with record.condition:
            record.condition.notify_all()
        if settled and settled[0] is record:
            settled.popleft()  # not before: a caller not notified now is notified when the producer has failed
        if turn.over():
            return


async def tell_all_settled(lot: ParkingLot, turn: Turn) -> None:
    """Wakes all callers, giving the loop its turns meanwhile."""
    while lot.settled:
        await tell_settled(lot, turn)
        await asyncio.sleep(0)
