"""The identity of a task: its write, epoch, partition and attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from aioproducer.errors import IllegalStateException

QUERY_ID = "sql.streaming.queryId"
EPOCH = "streaming.sql.batchId"


@dataclass(frozen=True)
class Task:
    """One attempt to write one partition of a batch, or of an epoch of a stream."""

    write: str
    """The batch's writeId, empty if it has none, or the id of the streaming query, which its checkpoint keeps."""
    epoch: int
    """The stream's epoch, or the batch's writeEpoch, which is 0 by default."""
    partition: int
    attempt: int = 0

    @classmethod
    def of_batch(cls, write_id: str, epoch: int) -> Self:
        """The task of a batch that runs in this process.

        A batch that foreachBatch writes sees the stream's properties, but they are not its own: it has its writeId."""
        context = _running()
        return cls(write_id, epoch, context.partitionId(), context.attemptNumber())

    @classmethod
    def of_stream(cls) -> Self:
        """The task of an epoch that runs in this process."""
        context = _running()
        query, epoch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(EPOCH)
        if query is None or epoch is None:
            raise IllegalStateException(f"Spark has not set {QUERY_ID} or {EPOCH} for this task: {query!r}, {epoch!r}")
        return cls(query, int(epoch), context.partitionId(), context.attemptNumber())

    def __str__(self) -> str:
        of = f" of {self.write}" if self.write else ""
        return f"epoch {self.epoch}{of}, partition {self.partition}, attempt {self.attempt}"


def _running() -> Any:
    from pyspark import TaskContext  # here, because code that only names a task needs no Spark

    context = TaskContext.get()
    if context is None:
        raise IllegalStateException("rows are written by tasks of Spark only, and none runs here")
    return context
