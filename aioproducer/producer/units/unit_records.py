"""A record on its way into a unit, and from there into the accumulator.

Everything that can fail for the record alone, or that must be waited for, comes first: interceptors, serializers,
metadata and the partitioner. So a unit that has ended can be put into a transaction at once, and holds up no other one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator, as_bytes
from aioproducer.producer.admission.admission import Admission
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.producer.hooks.in_context import InContext
from aioproducer.producer.hooks.pending_serialization import Later
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.sender.sender_calls import SenderCalls
from aioproducer.producer.units.unit_member import UnitRecord
from aioproducer.protocol.text_check import check_topic
from aioproducer.types import Headers, ProducerRecord


class UnitRecords:
    """Prepares and places the records of units.

    ``taking()`` is called for each record of ``unit.send``, and may raise; ``placed(record)`` for each that joins a
    transaction.
    """

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: RecordAccumulator,
        lot: ParkingLot,
        sender: SenderCalls,
        hooks: Hooks,
        admission: Admission,
        taking: Callable[[], object] | None,
        placed: Callable[[ProducerRecord], object] | None,
    ) -> None:
        self._loop = accumulator.loop
        self._max_block = config.max_block_ms / 1000
        self._accumulator = accumulator
        self._lot = lot
        self._sender = sender
        self._hooks = hooks
        self._admission = admission
        self._taking = taking
        self._placed = placed
        self._serializing = asyncio.Lock()

    # Into a unit

    async def prepare(self, given: ProducerRecord) -> UnitRecord:
        """The record, ready for the accumulator; raises what ``send`` would raise, or its delivery end with.

        Waits for serializers, and for metadata at most max.block.ms. Interceptors learn of a record that fails here.
        """
        hooks = self._hooks
        if self._taking is not None:
            self._taking()
        if not hooks.intercepts():
            return await self._prepared(given)
        given = hooks.on_send(given)
        try:
            return await self._prepared(given)
        except BaseException as error:
            hooks.on_send_error(given, error)
            raise

    async def _prepared(self, given: ProducerRecord) -> UnitRecord:
        topic, value, key, partition, timestamp_ms, headers = given
        accumulator, hooks = self._accumulator, self._hooks
        check_topic(topic)
        try:
            value_bytes, key_bytes = value, key
            if hooks.serializes:
                value_bytes, key_bytes, headers = await self._serialized(topic, value, key, headers)
            value_bytes, key_bytes = as_bytes(value_bytes, "value"), as_bytes(key_bytes, "key")
            accumulator.check(topic, value_bytes, key_bytes, partition, timestamp_ms, headers)
            await self._metadata(topic, partition)
            if partition is None and hooks.partitions():
                infos = self._sender.known_partitions(topic)
                partition = hooks.partition(topic, key, key_bytes, value, value_bytes, infos)
        except Exception as error:
            self._admission.refused(topic, error)
            raise
        size = accumulator.record_size(value_bytes, key_bytes, headers)
        timestamp = accumulator.now_ms() if timestamp_ms is None else timestamp_ms
        own = None if headers is None else tuple(headers)  # the caller's list may change
        return UnitRecord(given, topic, value_bytes, key_bytes, partition, timestamp, own, size)

    async def _serialized(
        self, topic: str, value: Any, key: Any, headers: Headers | None
    ) -> tuple[Any, Any, Headers | None]:
        """Value, key and headers from the serializers, which are called one at a time and in turn."""
        if not self._serializing.locked():
            try:
                return self._hooks.serialize(topic, value, key, headers)
            except Later as later:
                serialization = later.serialization
            async with self._serializing:
                await InContext(serialization.finish(), serialization.context, self._hooks)
        else:
            async with self._serializing:
                try:
                    return self._hooks.serialize(topic, value, key, headers)
                except Later as later:
                    serialization = later.serialization
                await InContext(serialization.finish(), serialization.context, self._hooks)
        return serialization.value_bytes, serialization.key_bytes, serialization.headers or headers

    async def _metadata(self, topic: str, partition: int | None) -> None:
        """Waits until the topic, and the partition if one is named, are known."""
        queues = self._accumulator.topics.get(topic)
        least = 1 if partition is None else partition + 1
        if queues is None or len(queues.queues) < least:
            await self._sender.partitions_for(topic, least)

    # Into the accumulator

    def place(self, record: UnitRecord) -> Delivery:
        """Appends the record to the open transaction; it waits in the parking lot if there is no memory now."""
        lot = self._lot
        delivery = None
        if not lot.memory.records:
            delivery = self._accumulator.place(
                record.topic,
                record.value,
                record.key,
                record.partition,
                record.timestamp_ms,
                record.headers,
                record.size,
            )
        if delivery is None:
            delivery = self._park(record)
        result, index = delivery.place()
        result.add_callback(index, _seen)
        if self._placed is not None:
            self._placed(record.given)
        return delivery

    def _park(self, record: UnitRecord) -> Delivery:
        parked = ParkedRecord(
            self._accumulator.audience,
            ProducerRecord(
                record.topic, record.value, record.key, record.partition, record.timestamp_ms, record.headers
            ),
            record.size,
            now=self._loop.time(),
            max_block=self._max_block,
        )
        lot = self._lot
        lot.park(parked)
        if parked.waiting():
            lot.awaited(parked.result)  # the unit awaits it, and holds its memory
        self._sender.parked(record.topic)
        return Delivery(parked.result, 0)


def _seen() -> None:
    """The callback of every record of a unit: its failure is the unit's, so it is not logged as one that no caller
    sees."""
