"""The end of batches and parked records whose time is over."""

from __future__ import annotations

import math
from typing import Final, final

from aioproducer.net.client import KafkaClient
from aioproducer.net.connection.connection import LISTENS
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.delivery.produce_result import Loop
from aioproducer.producer.exchange.batch_completer import BatchCompleter
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.sender.metadata_waits import MetadataWaits
from aioproducer.producer.sender.obstacles import Situation, why_not_delivered

PATIENCE: Final = 1.0
"""Seconds. Answers to all requests in flight take less to handle, and no broker keeps records alive for longer."""

STANDSTILL: Final = 0.05
"""Seconds that a look may come late without a reason worth mentioning."""


@final
class Expiry:
    """delivery.timeout.ms of batches and max.block.ms of parked records; the errors say why each has waited. Times are
    the loop's, in seconds.

    When the loop has stood still, answers may wait in the sockets for batches whose time is over. So while requests are
    in flight, a batch that a look finds late fails at the next one, LISTENS seconds after it; or later, if its broker
    has just answered or its answers wait for their turn, up to PATIENCE.
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
        self._looked = -math.inf
        """The last look. What was due by then fails at the next one."""
        self._next_look = -math.inf
        self._woke = -math.inf
        """The last look that came late: the loop had stood still."""

    def next(self) -> float | None:
        """When ``expire`` has batches to look at."""
        due = self._completer.next_expiry()
        return None if due is None else max(due, self._next_look)

    def expire(self, now: float) -> None:
        """Fails what is due."""
        due = self._completer.next_expiry()
        if due is not None and due <= now and self._next_look <= now:
            if now - max(due, self._next_look) > STANDSTILL:
                self._woke = now
            by = self._looked if self._client.requests_in_flight() else now
            if self._completer.expire(by, now, self._is_heard, self._why_not_delivered):
                self._next_look = now
            else:
                self._looked = now
                self._next_look = now + LISTENS
        if self._lot.somebody_waits():
            self._lot.expire(now, self._too_long)

    def _is_heard(self, batch: ProducerBatch, over: float, now: float) -> bool:
        """Whether its answer may be among those that have just come; ``over`` is when its time was."""
        link = self._client.links.get(batch.sent_to) if batch.in_flight else None
        connection = None if link is None else link.connection
        if connection is None or now > max(over, self._woke) + PATIENCE:
            return False
        return connection.answers_wait() or now < connection.answered_at + LISTENS

    def _why_not_delivered(self, queue: PartitionQueue, batch: ProducerBatch) -> str:
        return why_not_delivered(self._situation, queue, batch, self._loop.time())[0].text
