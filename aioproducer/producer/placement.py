"""Waiting until a parked record is in the accumulator, or has failed: how callers wait, and how they are told.

Each has a Condition of its own, which comes with its record. There is nothing that could be lost on the way: the record
is placed first, and then its caller is notified.
"""

from __future__ import annotations

import asyncio

from aioproducer.producer.parked_record import ParkedRecord
from aioproducer.producer.parking import ParkingLot


async def placed(lot: ParkingLot, record: ParkedRecord) -> None:
    """Returns when the record is in the accumulator, or has failed; it is withdrawn if the caller is cancelled."""
    condition = record.condition
    try:
        async with condition:
            while record.waiting():
                await condition.wait()
    except asyncio.CancelledError:
        lot.withdraw(record)
        raise


async def tell_settled(lot: ParkingLot) -> None:
    """Wakes the callers whose records were placed or have failed."""
    settled = lot.settled
    told = tuple(settled)
    for record in told:
        async with record.condition:
            record.condition.notify_all()
    del settled[: len(told)]  # not before: whoever is not told now is told when the producer has failed
