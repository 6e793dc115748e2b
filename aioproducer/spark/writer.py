"""The writes of a batch and of a stream. A writer is made on the driver, and sent to each task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from aioproducer import KafkaProducer
from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.exactly_once import write_once
from aioproducer.spark.read_ahead import read_ahead
from aioproducer.spark.sink_options import SinkOptions
from aioproducer.spark.sink_schema import record_columns
from aioproducer.spark.task import Task
from aioproducer.spark.topic_streams import send_rows

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task tells the driver when its rows are in the log."""

    partition: int
    rows: int


@dataclass(frozen=True)
class SinkWrite:
    """What a task has to do."""

    options: SinkOptions
    columns: Mapping[str, str]
    streaming: bool

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, overwrite: bool, *, streaming: bool) -> Self:
        """Checks everything that can be checked before a task runs."""
        if overwrite:
            raise IllegalArgumentException(
                "a topic cannot be overwritten, only appended to: "
                + ('outputMode("append")' if streaming else 'mode("append")')
            )
        chosen = SinkOptions.of(options, streaming=streaming)
        return cls(chosen, record_columns(schema, chosen.topic), streaming)

    def run(self, batches: Iterator[RecordBatch]) -> Written:
        """Writes the rows of the task that runs here, and returns when they have been acknowledged."""
        task = Task.running(self.options.write_id or "", streaming=self.streaming)
        if self.options.exactly_once:
            return Written(task.partition, asyncio.run(write_once(self.options, self.columns, task, batches)).rows)
        return Written(task.partition, asyncio.run(self._at_least_once(task, batches)))

    async def _at_least_once(self, task: Task, batches: Iterator[RecordBatch]) -> int:
        async with KafkaProducer.from_config(self.options.configs) as producer:
            return await send_rows(producer, read_ahead(batches), self.columns, self.options.topic, str(task))


class BatchWriter(DataSourceArrowWriter):
    """``df.write``"""

    def __init__(self, write: SinkWrite) -> None:
        self._write = write

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, overwrite: bool) -> Self:
        return cls(SinkWrite.of(options, schema, overwrite, streaming=False))

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        return self._write.run(iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream``"""

    def __init__(self, write: SinkWrite) -> None:
        self._write = write

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, overwrite: bool) -> Self:
        return cls(SinkWrite.of(options, schema, overwrite, streaming=True))

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        return self._write.run(iterator)
