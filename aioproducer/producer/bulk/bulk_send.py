"""One bulk call under way: rows in, a result out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final

from aioproducer.errors import (
    DeliveryError,
    IllegalArgumentException,
    KafkaError,
    Outcome,
    RecordTooLargeException,
    SerializationException,
)
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.admission.admission import Admission
from aioproducer.producer.bulk.columns import Columns
from aioproducer.producer.bulk.result import BulkResult
from aioproducer.producer.bulk.rows import Rows
from aioproducer.producer.bulk.table_columns import TableColumns
from aioproducer.producer.bulk.table_rows import TableRows
from aioproducer.producer.bulk.table_stream import TableStream
from aioproducer.producer.bulk.tally import BulkTally
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.diagnosis.failure_log import FailedRun
from aioproducer.producer.diagnosis.wording import counted
from aioproducer.producer.parking.enqueue_wait import placed
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.timing.time_slice import TimeSlice
from aioproducer.types import ProducerRecord

_REFUSED: Final = (IllegalArgumentException, RecordTooLargeException, SerializationException)
"""Errors of a single record, which affect no other; PartitionerException is one of them."""


class BulkSend:
    """Appends rows as room allows, and keeps their account.

    ``hooked``: the user's code is called for every record; ``serialize``: that includes the serializers, if any.
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
        self._slice = TimeSlice(accumulator.loop)
        self._tally = BulkTally(accumulator.loop)
        self._unread = partial(_soon, asyncio.get_running_loop(), admission.unread_runs)
        self._over: KafkaError | None = None
        """Why no further record is tried."""
        self._no_partition: KafkaError | None = None
        """The error of waiting for a partition that the topic does not have."""
        self._transaction = 0
        """The number of the records' transaction."""
        self._sending = False

    def __enter__(self) -> None:
        """Blocks the commit of the transaction until all records are sent."""
        self._transaction = self._admission.bulk_began()
        self._sending = True

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends the call; it no longer waits for records that have not ended.

        If the call raises, there is no result, so the failures so far are logged. If it is cancelled, its caller does
        not learn which records were not sent.
        """
        if exc is not None:
            self._admission.unread_runs(self._tally.failed_runs())
        self._tally.abandoned = True
        if self._sending and isinstance(exc, asyncio.CancelledError):
            self._missing(KafkaError(f"a call was cancelled before all its records for {self._topic!r} were sent"))
        self._all_sent()

    async def send(self, columns: Columns | TableColumns | TableStream) -> BulkResult:
        """Sends all rows, and returns when they have ended.

        If the columns break, what was read before is sent first, and a note on the error gives its outcome.
        """
        with self:
            if isinstance(columns, TableStream):
                while (portion := await columns.read()) is not None:
                    await self._send_rows(portion)
            else:
                while (rows := columns.read()) is not None:
                    await self._send_rows(rows)
            if columns.broken is None:
                self._all_sent()
            await self._tally.complete()
            if columns.broken is not None:
                result = self._tally.result(columns.count, None)
                columns.broken.add_note(f"before it {counted(result.count, 'record')} had been sent: {result!r}")
                raise columns.broken
            return self._tally.result(columns.count, self._unread)  # failures never read from it are logged

    async def _send_rows(self, rows: Rows | TableRows) -> None:
        """Appends all rows, or accounts for their errors; gives the loop its turns."""
        at, count = 0, rows.count
        while at < count:
            if self._over is None:
                self._over = self._admission.why_no_more(self._transaction)
            if self._over is not None:
                self._never_tried(range(rows.first + at, rows.first + count), self._over)
                at = count
            else:
                at, parked = self._append(rows, at)
                if parked is not None:
                    await self._wait(parked, rows.first + at - 1)
            if self._slice.over():
                await asyncio.sleep(0)
                self._slice.begin()

    def _all_sent(self) -> None:
        """The rows are exhausted."""
        if self._sending:
            self._sending = False
            self._admission.bulk_ended(self._transaction)

    def _append_directly(self, rows: Rows | TableRows, at: int) -> tuple[int, ParkedRecord | None]:
        """Appends without waiting; returns how far it got, and the record that must wait now."""
        refused: list[tuple[int, KafkaError]] = []
        at = rows.append_to(self._accumulator, self._topic, at, self._tally, refused)
        for index, error in refused:
            self._admission.refused(self._topic, error)
            self._refused(range(index, index + 1), error)
        return (at, None) if at == rows.count else self._append_one(rows, at)

    def _append_one(self, rows: Rows | TableRows, at: int) -> tuple[int, ParkedRecord | None]:
        """The same for a record that must wait, or that needs the user's code."""
        index = rows.first + at
        try:
            self._admission.check_open()
            record = ProducerRecord(self._topic, *rows.record(at))
            if self._no_partition is not None and self._lacks(record.partition):
                self._never_tried(range(index, index + 1), self._no_partition)
                return at + 1, None
            admitted = self._admission.let_in(record, asyncio.Condition, serialize=self._serialize)
        except _REFUSED as error:
            self._refused(range(index, index + 1), error)
            return at + 1, None
        except KafkaError as error:  # closed, failed, fenced, no transaction: all others would fail the same way
            self._over = error
            return at, None
        if isinstance(admitted, Delivery):
            self._tally.took(admitted._result, admitted._index, index)
            return at + 1, None
        return at + 1, admitted

    async def _wait(self, record: ParkedRecord, index: int) -> None:
        await placed(self._lot, record)
        self._tally.took(record.result, 0, index)  # not before: a withdrawn record has not failed
        error = record.result.error
        if error is None or isinstance(error, _REFUSED):
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
        self._missing(error)
        self._tally.refused(indices, DeliveryError.of(error, Outcome.NOT_SENT, (self._topic, -1)))

    def _missing(self, error: KafkaError) -> None:
        if self._admission.why_no_more(self._transaction) is None:
            self._admission.missing(error)


def _soon(
    loop: asyncio.AbstractEventLoop, function: Callable[[Sequence[FailedRun]], object], runs: Sequence[FailedRun]
) -> None:
    """Schedules the call on the loop, from any thread and any point; calls it directly if the loop has ended."""
    try:
        loop.call_soon_threadsafe(function, runs)
    except RuntimeError:
        function(runs)
