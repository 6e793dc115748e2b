"""The parts of a started producer. The producer for threads, the mock and the Spark sink share them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.admission.admission import Admission
from aioproducer.producer.admission.record_entry import RecordEntry
from aioproducer.producer.admission.serializer_lane import SerializerLane
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.sender.sender_calls import SenderCalls
from aioproducer.producer.transactions.transaction_calls import TransactionCalls

if TYPE_CHECKING:
    from aioproducer.producer.units.units import Units
    from aioproducer.telemetry.push_task import PushTask


@dataclass(frozen=True, slots=True)
class ProducerCore:
    """Wired once (``assembly.py``), before anything runs."""

    loop: asyncio.AbstractEventLoop
    accumulator: RecordAccumulator
    lot: ParkingLot
    failures: FailureLog
    sender: SenderCalls
    transactions: TransactionCalls | None
    """None without a transactional.id."""
    admission: Admission
    entry: RecordEntry
    lane: SerializerLane
    units: Units | None
    """None without a transactional.id."""
    telemetry: PushTask | None = None
    """None if metrics are not to be pushed to the brokers."""
