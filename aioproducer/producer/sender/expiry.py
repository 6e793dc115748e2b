"""The end of batches and parked records whose time is over."""

from __future__ import annotations

import math
from typing import final

from aioproducer.net.client import KafkaClient
from aioproducer.net.connection.connection import LISTENS
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
    the loop's, in seconds.

    When the loop has stood still, answers may wait in the sockets for batches whose time is over. So while requests are
    in flight, a batch fails only LISTENS seconds after the look that has found it late.
    """

    def __init__(
        self,
        loop: Loop,
        client: KafkaClient,
        completer: BatchCompleter,
        lot: ParkingLot,
        situation: Situation,
        waits: MetadataWaits,
    ) -> None:
        self._loop = loop
        self._client = client
        self._completer = completer
        self._lot = lot
        self._situation = situation
        self._too_long = waits.too_long
        self._looked: float | None = None
        """When a late batch was found, unless that was long enough ago."""
        self._listened = -math.inf
        """What was due by then fails."""

    def next(self) -> float | None:
        """When ``expire`` has a batch to fail, or a look to take."""
        due = self._completer.next_expiry()
        if due is None or due <= self._listened or self._looked is None:
            return due
        return max(due, self._looked + LISTENS)

    def expire(self, now: float) -> None:
        """Fails what is due."""
        due = self._completer.next_expiry()
        if due is not None and due <= now:
            self._completer.expire(self._listen(now), now, self._why_not_delivered)
        if self._lot.somebody_waits():
            self._lot.expire(now, self._too_long)

    def _listen(self, now: float) -> float:
        """What was due by then, all answers in the sockets have had time to come for."""
        if self._client.requests_in_flight() == 0:
            return now
        if self._looked is not None and now - self._looked >= LISTENS:
            self._listened, self._looked = self._looked, None
        if self._looked is None:
            self._looked = now
        return self._listened

    def _why_not_delivered(self, queue: PartitionQueue, batch: ProducerBatch) -> str:
        return why_not_delivered(self._situation, queue, batch, self._loop.time())[0].text
