"""The end of batches and parked records whose time is over."""

from __future__ import annotations

from typing import final

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.delivery.produce_result import Loop
from aioproducer.producer.exchange.batch_completer import BatchCompleter
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.sender.metadata_waits import MetadataWaits
from aioproducer.producer.sender.obstacles import Situation, why_not_delivered


@final
class Expiry:
    """delivery.timeout.ms of batches and max.block.ms of parked records; the errors say why each has waited. Times are
    the loop's, in seconds."""

    def __init__(
        self, loop: Loop, completer: BatchCompleter, lot: ParkingLot, situation: Situation, waits: MetadataWaits
    ) -> None:
        self._loop = loop
        self._completer = completer
        self._lot = lot
        self._situation = situation
        self._too_long = waits.too_long

    def expire(self, now: float) -> None:
        """Fails what is due."""
        self._completer.expire(now, self._why_not_delivered)
        if self._lot.somebody_waits():
            self._lot.expire(now, self._too_long)

    def _why_not_delivered(self, queue: PartitionQueue, batch: ProducerBatch) -> str:
        return why_not_delivered(self._situation, queue, batch, self._loop.time())[0].text
