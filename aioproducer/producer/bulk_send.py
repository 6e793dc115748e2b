"""One bulk call under way: rows in, a result out."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aioproducer.errors import (
    DeliveryError,
    IllegalArgumentException,
    KafkaError,
    Outcome,
    PartitionerException,
    RecordTooLargeException,
    SerializationException,
)
from aioproducer.producer.admission import Admission
from aioproducer.producer.bulk_result import BulkResult
from aioproducer.producer.bulk_rows import Rows
from aioproducer.producer.bulk_tally import BulkTally
from aioproducer.producer.delivery import Delivery
from aioproducer.producer.parked_record import ParkedRecord
from aioproducer.producer.parking import ParkingLot
from aioproducer.producer.placement import placed
from aioproducer.producer.record_accumulator import RecordAccumulator
from aioproducer.producer.table_rows import TableRows
from aioproducer.turn import Turn

_REFUSED: Final = (IllegalArgumentException, RecordTooLargeException, SerializationException)
"""What is wrong with one record and no other; a PartitionerException is among them."""


class BulkSend:
    """Appends rows as there is room, and keeps the account of them.

    ``hooked``: there is code of the user's to be called for every record; ``serialize``: serializers, if there are any,
    are a part of it.
    """

    def __init__(
        self,
        topic: str,
        accumulator: RecordAccumulator,
        admission: Admission,
        lot: ParkingLot,
        *,
        hooked: bool,
        serialize: bool,
    ) -> None:
        self._topic = topic
        self._accumulator = accumulator
        self._admission = admission
        self._lot = lot
        self._serialize = serialize
        self._append = self._append_one if hooked else self._append_directly
        self._turn = Turn(accumulator.loop)
        self._tally = BulkTally(accumulator.loop)
        self._over: KafkaError | None = None
        """Why no record is tried any more."""
        self._no_partition: KafkaError | None = None
        """What came of waiting for a partition that the topic does not have."""

    async def send_rows(self, rows: Rows | TableRows) -> None:
        """Appends them all, or accounts for what kept them out; gives the loop its turns."""
        at, count = 0, rows.count
        while at < count:
            if self._over is not None:
                self._never_tried(range(rows.first + at, rows.first + count), self._over)
                at = count
            else:
                at, parked = self._append(rows, at)
                if parked is not None:
                    await self._wait(parked)
            if self._turn.over():
                await asyncio.sleep(0)
                self._turn.begin()

    async def ended(self, count: int) -> BulkResult:
        """What became of all ``count`` records, when they have ended."""
        await self._tally.complete()
        return self._tally.result(count)

    def leave(self) -> None:
        """The call is over; if records have not ended yet, nobody waits for them here any more."""
        self._tally.abandoned = True

    def _append_directly(self, rows: Rows | TableRows, at: int) -> tuple[int, ParkedRecord | None]:
        """Appends without waiting: how far that went, and the record that has to wait now."""
        refused: list[tuple[int, KafkaError]] = []
        at = rows.append_to(self._accumulator, self._topic, at, self._tally, refused)
        for index, error in refused:
            self._admission.refused(self._topic, error)
            self._refused(range(index, index + 1), error)
        return (at, None) if at == rows.count else self._append_one(rows, at)

    def _append_one(self, rows: Rows | TableRows, at: int) -> tuple[int, ParkedRecord | None]:
        """The same for a record that has to wait, or for which code of the user's is to be called."""
        index = rows.first + at
        try:
            self._admission.check_open()
            value, key, partition, timestamp_ms, headers = rows.record(at)
            if self._no_partition is not None and self._lacks(partition):
                self._never_tried(range(index, index + 1), self._no_partition)
                return at + 1, None
            admitted = self._admission.let_in(
                self._topic, value, key, partition, timestamp_ms, headers, asyncio.Condition, serialize=self._serialize
            )
        except _REFUSED as error:
            self._refused(range(index, index + 1), error)
            return at + 1, None
        except KafkaError as error:  # closed, failed, fenced, no transaction: it would be the same for all others
            self._over = error
            return at, None
        if isinstance(admitted, Delivery):
            self._tally.took(admitted._result, admitted._index, index)
            return at + 1, None
        self._tally.took(admitted.result, 0, index)
        return at + 1, admitted

    async def _wait(self, record: ParkedRecord) -> None:
        await placed(self._lot, record)
        error = record.result.error
        if error is None or isinstance(error, PartitionerException):
            return
        if self._lacks(record.partition):
            self._no_partition = error
        else:
            self._over = error

    def _lacks(self, partition: Any) -> bool:
        """Whether the topic is known and has no such partition."""
        queues = self._accumulator.topics.get(self._topic)
        return queues is not None and isinstance(partition, int) and partition >= len(queues.queues)

    def _never_tried(self, indices: range, error: KafkaError) -> None:
        self._admission.never_tried(self._topic, len(indices))
        self._refused(indices, error)

    def _refused(self, indices: range, error: KafkaError) -> None:
        self._admission.missing(error)
        self._tally.refused(indices, DeliveryError.of(error, Outcome.NOT_SENT, (self._topic, -1)))
