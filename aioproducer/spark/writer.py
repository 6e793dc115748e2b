"""The writers of a batch and of a stream. A writer is made on the driver and sent to each task."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from aioproducer.errors import IllegalArgumentException, IllegalStateException
from aioproducer.process.event_loop import new_event_loop
from aioproducer.spark.exactly_once.epoch_commit import abort_epoch, commit_epoch
from aioproducer.spark.exactly_once.prepared import Outcome, prepared_of
from aioproducer.spark.exactly_once.write_once import write_once
from aioproducer.spark.for_tasks import ForTasks
from aioproducer.spark.sink.reachable import check_reachable
from aioproducer.spark.sink.read_ahead import read_ahead
from aioproducer.spark.sink.sink_options import SinkOptions
from aioproducer.spark.sink.sink_schema import record_columns
from aioproducer.spark.sink.task import Task
from aioproducer.spark.sink.task_producer import task_producer
from aioproducer.spark.sink.topic_streams import send_rows
from aioproducer.spark.sink.whole_input import input_of_worker, whole

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

T = TypeVar("T")


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task reports to the driver when its rows are in the log."""

    task: Task
    rows: int
    outcome: Outcome | None
    """With exactly-once."""


@dataclass(frozen=True)
class SinkWrite:
    """What a task must do."""

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
        options = self.options
        task = Task.of_stream() if self.streaming else Task.of_batch(options.write_id or "", options.write_epoch)
        rows = whole(batches, input_of_worker(), str(task))
        if not options.exactly_once:
            return Written(task, _run(self._at_least_once(task, rows)), None)
        outcome = _run(write_once(options, self.columns, task, rows))
        return Written(task, outcome.rows, outcome)

    def commit(self, messages: Iterable[Written | None]) -> None:
        """Runs on the driver when all tasks have succeeded: the rows of all of them become readable."""
        all_given = list(messages)
        if not self.options.exactly_once:
            return
        if None in all_given or (given := _outcomes(all_given)) is None:
            raise IllegalStateException(
                f"Spark has handed over {all_given}, and must hand over what each task of the epoch has reported; "
                "nothing was committed"
            )
        task, outcomes = given
        _run(commit_epoch(self.options, task.write, task.epoch, outcomes))

    def abort(self, messages: Iterable[Written | None]) -> None:
        """Runs on the driver when a task has failed for good, or ``commit`` has; knows of those that succeeded."""
        if (given := _outcomes(messages)) is not None:
            task, outcomes = given
            _run(abort_epoch(self.options, task.write, task.epoch, prepared_of(outcomes)))

    async def _at_least_once(self, task: Task, batches: Iterator[RecordBatch]) -> int:
        async with task_producer(self.options) as producer:
            return await send_rows(producer, read_ahead(batches), self.columns, self.options.topic, str(task))


def _outcomes(messages: Iterable[Written | None]) -> tuple[Task, list[Outcome]] | None:
    """One of the tasks, and the outcomes of all that wrote exactly once; None if there is none."""
    written = [(one.task, one.outcome) for one in messages if one is not None and one.outcome is not None]
    return (written[0][0], [outcome for _, outcome in written]) if written else None


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


class _Writer(ForTasks):
    """What both writers are."""

    streaming: ClassVar[bool]

    def __init__(self, write: SinkWrite) -> None:
        self._write = write

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, overwrite: bool) -> Self:
        write = SinkWrite.of(options, schema, overwrite, streaming=cls.streaming)
        _run(check_reachable(write.options))
        return cls(write)

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        return self._write.run(iterator)


class BatchWriter(_Writer, DataSourceArrowWriter):
    """``df.write``"""

    streaming = False

    def commit(self, messages: list[Written | None]) -> None:
        self._write.commit(messages)

    def abort(self, messages: list[Written | None]) -> None:
        self._write.abort(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """``df.writeStream``"""

    streaming = True

    def commit(self, messages: list[Written | None], batchId: int) -> None:
        self._write.commit(messages)

    def abort(self, messages: list[Written | None], batchId: int) -> None:
        self._write.abort(messages)
