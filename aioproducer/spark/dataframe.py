"""A DataFrame, sent by a producer on the driver."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

try:
    import pyarrow as pa
    import pyspark  # noqa: F401  with which the sink checks columns
except ModuleNotFoundError as error:
    raise ImportError("aioproducer.spark needs PySpark 4.1 or newer: pip install 'aioproducer[spark]'") from error

from aioproducer.producer.bulk.result import BulkResult
from aioproducer.spark.sink.sink_schema import record_columns
from aioproducer.spark.spark_job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from aioproducer import KafkaProducer

_END: Final = object()
_COLUMN = "batch"


class Progress(NamedTuple):
    """How far a DataFrame has been read."""

    rows: int
    """Rows that the producer has accepted; the latest may not have been delivered yet."""
    size_in_bytes: int
    """The size of these rows in Arrow's format."""
    seconds: float
    """Since the call began."""


async def produce_dataframe(
    producer: KafkaProducer,
    df: DataFrame,
    *,
    topic: str,
    on_progress: Callable[[Progress], object] | None = None,
) -> BulkResult:
    """Sends a record for each row of a DataFrame, through a producer on this event loop, and returns when all of them
    have ended; the result is that of ``send_table``.

    The columns are the sink's: ``value``, and optionally ``key``, ``headers``, ``partition`` and ``timestamp``. Rows
    come in the order of the DataFrame's partitions. Spark's workers compute them; they are brought here in Arrow's
    format as fast as the producer takes them, and never collected. This process holds two batches of
    spark.sql.execution.arrow.maxRecordsPerBatch rows and what the producer's buffer.memory allows; Spark's JVM holds
    the results of the present partition and of the next one. These records use everything the producer has:
    transactions, interceptors, metrics. Other coroutines may use the producer meanwhile.

    ``on_progress`` is called on the event loop after each batch. Several calls at once are several Spark jobs at once.
    If the call is cancelled, its jobs are cancelled and no more rows are sent; those that the producer has accepted go
    on to their own end. Raises IllegalArgumentException for columns that cannot be sent, before any job; what Spark
    raises, with a note that says what had been sent by then; and what ``on_progress`` raises.
    """
    columns = record_columns(df.schema, topic)
    batches = df.select(list(columns.values())).mapInArrow(_as_ipc, f"{_COLUMN} binary")
    async with SparkJob(df.sparkSession, f"produce_dataframe to {topic}") as job:
        stream = _Stream(job, on_progress)
        try:
            await stream.open(lambda: batches.toLocalIterator(prefetchPartitions=True))
            return await producer.send_table(topic, stream, **columns)
        finally:
            stream.leave()


class _Stream:
    """The batches of a DataFrame as an asynchronous iterator: each is fetched while the one before it is sent."""

    def __init__(self, job: SparkJob, on_progress: Callable[[Progress], object] | None) -> None:
        self._job = job
        self._on_progress = on_progress
        self._began = asyncio.get_running_loop().time()
        self._rows: Iterator[Any] | None = None
        self._coming: asyncio.Future[Any] | None = None
        self._count = 0
        self._size = 0
        self._given = 0

    async def open(self, iterate: Callable[[], Iterator[Any]]) -> None:
        self._rows = await self._job.call(iterate)
        self._coming = self._job.begin(self._next)

    def leave(self) -> None:
        """Drops the rest of the iteration in the job's thread, because that calls Spark, which may take a while."""
        _ = self._job.begin(self._forget)

    def __aiter__(self) -> _Stream:
        return self

    async def __anext__(self) -> Any:
        if self._given and self._on_progress is not None:
            self._on_progress(Progress(self._count, self._size, asyncio.get_running_loop().time() - self._began))
        assert self._coming is not None
        packed = await asyncio.shield(self._coming)
        if packed is _END:
            raise StopAsyncIteration
        self._coming = self._job.begin(self._next)
        (batch,) = pa.ipc.open_stream(packed)
        self._given += 1
        self._count += batch.num_rows
        self._size += batch.nbytes
        return batch

    def _next(self) -> Any:
        assert self._rows is not None
        row: Any = next(self._rows, _END)
        return _END if row is _END else row[0]

    def _forget(self) -> None:
        self._rows = None


def _as_ipc(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Makes each batch one row of bytes; called by Spark's workers."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], [_COLUMN])
