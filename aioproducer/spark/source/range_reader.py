"""Reads a range of offsets of one partition, as Arrow record batches: the work of one task."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import pyarrow as pa

from aioproducer.configs.config_def import table
from aioproducer.errors import CorruptRecordException, OffsetOutOfRangeException, UnknownTopicOrPartitionException
from aioproducer.reader import PartitionReader, ReaderConfig
from aioproducer.records.batch_columns import BatchColumns
from aioproducer.records.record_batch import RecordBatch
from aioproducer.spark.loop_thread import LoopThread
from aioproducer.spark.source.arrow_columns import Run, arrow_batch
from aioproducer.spark.source.offset_plan import OffsetRange

FULL = 4 * 1024 * 1024
"""The size in bytes at which an Arrow record batch is handed out; one Kafka batch may make it larger."""

_API_TIMEOUT = table(ReaderConfig)["default.api.timeout.ms"]
_LOST = (OffsetOutOfRangeException, UnknownTopicOrPartitionException)

log = logging.getLogger(__name__)


class _Fetched(NamedTuple):
    begin: int
    """The offset to begin at; the first batch may also have earlier ones."""
    batches: list[RecordBatch]
    position: int
    """The offset after them."""


def read_range(
    configs: Mapping[str, str], wanted: OffsetRange, schema: pa.Schema, *, fail_on_data_loss: bool
) -> Iterator[Any]:
    """The records of a range, in order, in the columns of ``schema``; control records only with the column ``batch``.

    While one fetch is turned into columns the next one is under way, so at most two are in memory, and ``FULL`` bytes
    of columns. If the log no longer has all of the range: OffsetOutOfRangeException or
    UnknownTopicOrPartitionException; without ``fail_on_data_loss`` a warning in the log, and the records that are left.
    """
    with LoopThread() as thread:
        source = _Source(configs, wanted, fail_on_data_loss)
        try:
            yield from _batches(source, wanted, schema, thread)
        finally:
            thread.run(source.close())


def _batches(source: _Source, wanted: OffsetRange, schema: pa.Schema, thread: LoopThread) -> Iterator[Any]:
    names = set(schema.names)
    partition = wanted.topic_partition

    def empty() -> tuple[BatchColumns, list[Run]]:
        return BatchColumns("key" in names, "value" in names, "headers" in names), []

    columns, runs = empty()
    coming: Future[_Fetched | None] = thread.submit(source.next())
    while (fetched := coming.result()) is not None:
        if fetched.position < wanted.end:
            coming = thread.submit(source.next())
        for batch in fetched.batches:
            if batch.is_control and "batch" not in names:
                continue
            try:
                taken = batch.append_to(columns, fetched.begin, wanted.end)
            except CorruptRecordException as error:
                raise CorruptRecordException(f"{partition}: {error}") from error
            if taken:
                runs.append(Run(taken, batch))
            if columns.size() >= FULL:
                yield arrow_batch(schema, partition, columns.buffers(), runs)
                columns, runs = empty()
        if fetched.position >= wanted.end:
            break
    if runs:
        yield arrow_batch(schema, partition, columns.buffers(), runs)


class _Source:
    """Opens a reader of the partition on the thread's event loop."""

    def __init__(self, configs: Mapping[str, str], wanted: OffsetRange, fail_on_data_loss: bool) -> None:
        self._configs = configs
        self._wanted = wanted
        self._reader = self._open(wanted.begin)
        self._patience = float(configs.get(_API_TIMEOUT.name, _API_TIMEOUT.default)) / 1000
        self._fail_on_data_loss = fail_on_data_loss

    def _open(self, at: int) -> PartitionReader:
        rest: dict[str, Any] = dict(self._configs)
        return PartitionReader(rest.pop("bootstrap.servers"), self._wanted.topic, self._wanted.partition, at, **rest)

    async def close(self) -> None:
        await self._reader.close()

    async def next(self) -> _Fetched | None:
        """The next batches; None if there are no more although the end is not reached."""
        while True:
            try:
                return await self._next()
            except _LOST as error:
                if self._fail_on_data_loss:
                    error.add_note(
                        f"offsets {self._wanted.begin} to {self._wanted.end - 1} were to be read; with "
                        "failOnDataLoss=false what is left is read, and this is a warning"
                    )
                    raise
                log.warning("%s: data may have been lost: %s", self._wanted.topic_partition, error)
                if not await self._skip_what_is_lost():
                    return None

    async def _next(self) -> _Fetched:
        reader = self._reader
        await reader.start()
        before, empty = reader.position, 0.0
        assert before is not None
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            batches = await reader.next_batches()
            position = reader.position
            assert position is not None
            if position != before:
                return _Fetched(before, batches, position)
            # A leader that has just taken over may not yet know how far its log is committed.
            empty += loop.time() - begun
            if empty >= self._patience:
                raise OffsetOutOfRangeException(
                    f"nothing has come for offset {before} of {self._wanted.topic_partition} in {empty:.0f} s: its log "
                    f"ends at {await reader.end_offset()}, and {self._wanted.end} was its end when this was planned"
                )

    async def _skip_what_is_lost(self) -> bool:
        """Continues at the log's beginning; False if nothing of the range is there."""
        position = self._reader.position
        assert position is not None
        try:
            first = await self._reader.beginning_offset()
        except UnknownTopicOrPartitionException:
            return False
        if not position < first < self._wanted.end:
            return False
        await self._reader.close()
        self._reader = self._open(first)
        return True
