"""The sink, whose tasks and commits write down what they do; and the rows' way to it, on which there may be trouble.

Spark's processes import this module.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark import TaskContext

from aioproducer.spark import AioproducerDataSource
from aioproducer.spark.exactly_once.ledger import KafkaDriversLedger
from aioproducer.spark.writer import BatchWriter, StreamWriter

from .plan import Kind, Moment

DIRECTORY = "CAMPAIGN_DIRECTORY"
"""The environment variable with the directory in which everybody leaves files."""

PAUSE = 0.12
"""Seconds between two batches of rows."""

_SLOW = 12.0
"""Seconds for which a task is slow, at most: Spark starts a copy, and ends this attempt when the copy has succeeded."""


def directory() -> Path:
    return Path(os.environ[DIRECTORY])


def note(event: str) -> None:
    """Adds a line to the file of events."""
    file = os.open(directory() / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{event}\n".encode())
    finally:
        os.close(file)


def upstream(batches: Iterator[Any]) -> Iterator[Any]:
    """For mapInArrow, before the sink."""
    for batch in batches:
        yield batch
        time.sleep(PAUSE)
        if _taken(Kind.UPSTREAM):
            raise ConnectionError("a transient error upstream")
        if _taken(Kind.SPECULATION):
            end = time.monotonic() + _SLOW
            while time.monotonic() < end:
                yield batch.slice(0, 0)  # Spark looks whether the task was killed when something comes
                time.sleep(0.05)


def _taken(kind: Kind) -> bool:
    """Whether there is trouble of this kind for the first that looks."""
    try:
        (directory() / kind.name).unlink()
    except FileNotFoundError:
        return False
    note(f"{kind.name} taken")
    return True


class _Watched:
    def write(self, iterator: Any) -> Any:
        context = TaskContext.get()
        assert context is not None
        place = f"{context.partitionId()} {context.attemptNumber()}"
        note(f"{Moment.BEGUN} {place}")
        written = super().write(iterator)  # type: ignore[misc]
        note(f"{Moment.WROTE} {place}")
        return written

    def commit(self, *arguments: Any) -> None:
        decide = KafkaDriversLedger.decide

        async def and_tell(ledger: KafkaDriversLedger) -> None:
            await decide(ledger)
            note(Moment.DECIDED)

        note(Moment.COMMITTING)
        with patch.object(KafkaDriversLedger, "decide", and_tell):
            super().commit(*arguments)  # type: ignore[misc]
        note(Moment.COMMITTED)


class WatchedBatch(_Watched, BatchWriter):
    pass


class WatchedStream(_Watched, StreamWriter):
    pass


class Watched(AioproducerDataSource):
    @classmethod
    def name(cls) -> str:
        return "watched"

    def writer(self, schema: Any, overwrite: bool) -> Any:
        return WatchedBatch.of(self.options, schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return WatchedStream.of(self.options, schema, overwrite)
