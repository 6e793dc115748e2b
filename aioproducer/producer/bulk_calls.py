"""The calls that send many records at once, for a producer's users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Iterable
from typing import Any, Generic

from aioproducer.producer.bulk.bulk_send import BulkSend
from aioproducer.producer.bulk.columns import Columns
from aioproducer.producer.bulk.result import BulkResult
from aioproducer.producer.bulk.table_columns import TableColumns
from aioproducer.producer.bulk.table_stream import TableStream
from aioproducer.producer.diagnosis.explanation import counted
from aioproducer.type_variables import K, V
from aioproducer.types import Headers


class BulkCalls(ABC, Generic[K, V]):
    """A mixin of the producer."""

    @abstractmethod
    def _bulk_send(self, topic: str, *, serialize: bool = True) -> BulkSend:
        """The object that carries out one call; IllegalStateException if no call may be made here and now."""

    async def send_many(
        self,
        topic: str,
        values: Iterable[V | None],
        *,
        keys: Iterable[K | None] | None = None,
        partitions: Iterable[int | None] | None = None,
        timestamps_ms: Iterable[int | None] | None = None,
        headers: Iterable[Headers | None] | None = None,
    ) -> BulkResult:
        """Sends a record for each value, with back-pressure, and returns when all of them have ended.

        The other iterables have one item for every value, with the same meaning as for ``send``; None where ``send``
        would be given none. Lists, generators and other iterables are read in order, a little ahead, as there is room.
        Records of one partition are sent in that order.

        A record that fails does not affect the others: the result has its index and the error that ``send`` or its
        delivery would have raised, which is logged if nobody looks at it. If a record has waited max.block.ms for
        memory or metadata, or the producer is closed meanwhile, all later records fail with the same error without
        being tried.

        Raises IllegalArgumentException for arguments that are not iterable or not of the same length, and whatever an
        iterable raises. If the error appears on the way, the records before it are sent first, and a note on the
        exception gives their outcome. If the call is cancelled, it sends no more. Records in the accumulator by then
        stay under way, ``flush`` waits for them, and their failures are logged.

        A transaction fails if the call is cancelled before it has sent all its records, and cannot be committed while
        records are still to be sent. The call sends nothing to the next transaction.
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
        """``send_many`` for a table: a record for each row, made from the named columns, without a Python object each.

        The table is anything with ``__arrow_c_stream__``: from pyarrow, polars or pandas (2.2 or newer), or a stream of
        record batches, which is read as there is room. It is read through pyarrow, on the event loop. A source that
        must wait for its batches or compute them should do so elsewhere: the table may also be an asynchronous iterable
        of such tables or batches, each of which is awaited when there is room. Row numbers continue from one to the
        next. If the columns of one are wrong, this is raised after the rows before it were sent.

        ``value`` and ``key``: text or bytes of any kind, also as a dictionary. ``headers``: a list of structs of name
        and value, or a map. ``partition``: integers. ``timestamp``: timestamps, dates, or integers in milliseconds.
        Null means what None means to ``send``, and so does -1 for partition and timestamp. Columns are sent as they
        are, without the producer's serializers; interceptors and the partitioner are called for every record.

        Errors and cancellation are those of ``send_many``; indices are row numbers. Raises IllegalArgumentException
        for a column that is missing or of the wrong type, before anything is sent.
        """
        bulk = self._bulk_send(topic, serialize=False)
        roles = {"value": value, "key": key, "headers": headers, "partition": partition, "timestamp": timestamp}
        if isinstance(table, AsyncIterable):
            return await _send_all(bulk, TableStream(table, **roles))
        return await _send_all(bulk, TableColumns(table, **roles))


async def _send_all(bulk: BulkSend, columns: Columns | TableColumns | TableStream) -> BulkResult:
    with bulk:
        if isinstance(columns, TableStream):
            while (portion := await columns.read()) is not None:
                await bulk.send_rows(portion)
        else:
            while (rows := columns.read()) is not None:
                await bulk.send_rows(rows)
        if columns.broken is None:
            bulk.all_sent()
        await bulk.ended()
        if columns.broken is not None:
            result = bulk.result(columns.count)
            columns.broken.add_note(f"before it {counted(result.count, 'record')} had been sent: {result!r}")
            raise columns.broken
        return bulk.result(columns.count, logs_unread=True)
