"""The calls that send many records at once, for a producer's users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Iterable
from typing import Any

from aioproducer.producer.bulk_columns import Columns
from aioproducer.producer.bulk_result import BulkResult
from aioproducer.producer.bulk_send import BulkSend
from aioproducer.producer.table_columns import TableColumns
from aioproducer.producer.table_stream import TableStream
from aioproducer.types import Headers


class BulkCalls(ABC):
    """A part of a producer."""

    @abstractmethod
    def _bulk_send(self, topic: str, *, serialize: bool = True) -> BulkSend:
        """What carries one call out; IllegalStateException if none may be made here and now."""

    async def send_many(
        self,
        topic: str,
        values: Iterable[Any],
        *,
        keys: Iterable[Any] | None = None,
        partitions: Iterable[int | None] | None = None,
        timestamps_ms: Iterable[int | None] | None = None,
        headers: Iterable[Headers | None] | None = None,
    ) -> BulkResult:
        """Sends a record for each value, with back-pressure, and returns when all of them have ended.

        The other iterables have an item for every value, None where ``send`` would be given none; what each means is
        what it means to ``send``. Lists, generators and whatever else can be iterated are read as there is room, a
        little ahead, in order; so are the records of one partition sent.

        A record that fails harms no other: the result has its index and its error, which would have been raised by
        ``send`` or its delivery. If one has waited for memory or metadata for max.block.ms, or the producer is closed
        meanwhile, those after it fail with the same error without being tried.

        Raises IllegalArgumentException for iterables that are none or not of one length, and what an iterable of yours
        raises: when the length or the error shows only on the way, the records before it are sent first, and a note of
        the exception says what became of them. Cancelled, it sends no more; what is in the accumulator by then goes on
        to its own end, which ``flush`` waits for, and its failures are told in the log.
        """
        bulk = self._bulk_send(topic)
        columns = Columns(values, keys=keys, partitions=partitions, timestamps_ms=timestamps_ms, headers=headers)
        return await _send_all(bulk, columns)

    async def send_table(
        self,
        topic: str,
        table: Any,
        *,
        value: str,
        key: str | None = None,
        headers: str | None = None,
        partition: str | None = None,
        timestamp: str | None = None,
    ) -> BulkResult:
        """``send_many`` for a table: a record for each row, made of the columns named, with no Python object for any.

        The table is anything with ``__arrow_c_stream__``: of pyarrow, polars or pandas (2.2 or newer), or a stream of
        record batches, which is read as there is room. It is read on the event loop through pyarrow. What has to wait
        or to compute for its batches should do so elsewhere: the table may be an asynchronous iterable of such tables
        or batches, each of which is awaited as there is room. Their rows are numbered through, and what is wrong with
        the columns of one is told after the rows before it were sent.

        ``value`` and ``key``: text or bytes of any kind, also as a dictionary. ``headers``: a list of structs of name
        and value, or a map. ``partition``: integers. ``timestamp``: timestamps, dates, or integers in milliseconds.
        Null is what None is to ``send``, and so is -1 for partition and timestamp. Columns are sent as they are,
        without the producer's serializers; its interceptors and its partitioner are called for every record.

        Errors, cancellation and the end are those of ``send_many``; indices are row numbers. Raises
        IllegalArgumentException for a column that is missing or of another type, before anything is sent.
        """
        bulk = self._bulk_send(topic, serialize=False)
        roles = {"value": value, "key": key, "headers": headers, "partition": partition, "timestamp": timestamp}
        if isinstance(table, AsyncIterable):
            return await _send_all(bulk, TableStream(table, **roles))
        return await _send_all(bulk, TableColumns(table, **roles))


async def _send_all(bulk: BulkSend, columns: Columns | TableColumns | TableStream) -> BulkResult:
    try:
        if isinstance(columns, TableStream):
            while (portion := await columns.read()) is not None:
                await bulk.send_rows(portion)
        else:
            while (rows := columns.read()) is not None:
                await bulk.send_rows(rows)
        result = await bulk.ended(columns.count)
    finally:
        bulk.leave()
    if columns.broken is not None:
        columns.broken.add_note(f"before it {result.count} records were sent: {result!r}")
        raise columns.broken
    return result
