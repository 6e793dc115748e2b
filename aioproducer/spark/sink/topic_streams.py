"""Sends the rows of a task to their topics: for each topic one ``send_table``, which takes batch after batch."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aioproducer import KafkaProducer
from aioproducer.errors import KafkaError, TransactionAbortedException

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from aioproducer import BulkResult

FAIL_WITHIN: Final = 0.5
"""Seconds for which rows are still accepted after one has failed."""

PORTION: Final = 16
"""Batches after which a new ``send_table`` is begun for each topic, when rows name their topics. The task remembers
where a row stood until all rows of the same call have been delivered."""

_OTHER_ROW: Final = re.compile("^row [0-9]+, ")
"""How errors of ``send_table`` begin: with the number among the rows of the topic, which is not that in the task."""


class SinkException(KafkaError):
    """A row could not be delivered, so its task has failed; the cause is the error of its record, if there was one."""


async def send_rows(
    producer: KafkaProducer,
    batches: AsyncGenerator[RecordBatch, None],
    columns: Mapping[str, str],
    topic: str | None,
    where: str,
) -> int:
    """Sends every row, in order within each topic, and returns how many there were when all have been delivered.

    ``columns`` is what ``sink_schema`` returns; ``topic`` is the topic of every row, or None. ``where`` names the task
    in the SinkException, which says which row was the first that was not delivered, and why. What is read ahead of the
    deliveries is bounded by the producer's memory, and by two batches for each topic. Only rows that are not delivered
    yet, and those of the last ``PORTION`` batches, are remembered.
    """
    streams = TopicStreams(producer, columns, topic, where)
    try:
        async with asyncio.TaskGroup() as tasks, aclosing(batches):
            count = await streams.feed(batches, tasks)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None  # the first has cancelled the others
    streams.check()
    return count


class _Part(NamedTuple):
    """Rows of a batch that go to one topic; ``rows`` are their places in the batch, or None if it is all of them."""

    topic: str
    batch: RecordBatch
    rows: Any


class TopicStreams:
    """The streams of one task; each begins with its topic's first row of a portion."""

    def __init__(self, producer: KafkaProducer, columns: Mapping[str, str], topic: str | None, where: str) -> None:
        self._producer = producer
        self._roles: dict[str, Any] = {role: name for role, name in columns.items() if role != "topic"}
        self._topic = topic
        self._where = where
        self._streams: dict[str, _TopicStream] = {}
        self._taken: list[_TopicStream] = []
        """Those of earlier portions whose rows the producer has, and had not all delivered when last looked at."""
        self._left_off: int | None = None
        """The first row that was not handed out, because one before it seemed to have failed."""

    async def feed(self, batches: AsyncIterator[RecordBatch], tasks: asyncio.TaskGroup) -> int:
        """Hands out all rows, or those until one has failed, and returns how many."""
        time, count, portion = asyncio.get_running_loop().time, 0, 0
        looked = time()
        async for batch in batches:
            for part in self._parts(batch, count):
                await self._stream(part.topic, tasks).put(part, count)
            count += batch.num_rows
            portion += 1
            if portion == PORTION and self._topic is None:
                await self._end_portion()
                portion = 0
            if time() - looked >= FAIL_WITHIN:
                looked = time()
                if self._producer.metrics()["record-error-total"]:
                    self._left_off = count
                    break
        for stream in self._streams.values():
            await stream.end()
        return count

    def check(self) -> None:
        """SinkException for the first row that was not delivered; every stream has ended."""
        failures = [
            (*failed, stream.topic)
            for stream in (*self._taken, *self._streams.values())
            if (failed := stream.failed()) is not None
        ]
        if failures:
            row, error, topic = min(failures, key=lambda failure: (_taken_along(failure[1]), failure[0]))
            why = _OTHER_ROW.sub("", str(error))
            raise SinkException(
                f"{self._where}, row {row}, to topic {topic!r}: {type(error).__name__}: {why}"
            ) from error
        if self._left_off is not None:
            raise SinkException(
                f"{self._where}: rows from {self._left_off} on were not sent: the producer has counted records that "
                "failed, and they are none of these rows"
            )

    async def _end_portion(self) -> None:
        """Forgets where delivered rows stood. Waits until the producer has all rows: the next ones come behind."""
        streams = self._streams.values()
        for stream in streams:
            await stream.end()
        for stream in streams:
            await stream.taken.wait()
        self._taken = [stream for stream in (*self._taken, *streams) if not stream.delivered()]
        self._streams = {}

    def _stream(self, topic: str, tasks: asyncio.TaskGroup) -> _TopicStream:
        stream = self._streams.get(topic)
        if stream is None:
            stream = self._streams[topic] = _TopicStream(topic)
            stream.sending = tasks.create_task(self._producer.send_table(topic, stream, **self._roles))
        return stream

    def _parts(self, batch: RecordBatch, first: int) -> Iterable[_Part]:
        """The batch divided by topics; rows keep their order."""
        if self._topic is not None:
            return [_Part(self._topic, batch, None)]
        column = batch.column("topic")
        if column.null_count:
            raise self._no_topic(first + column.is_null().index(True).as_py(), "is null")
        encoded = column.dictionary_encode()
        topics = []
        for number, topic in enumerate(encoded.dictionary.cast("large_binary").to_pylist()):
            try:
                topics.append(topic.decode())
                if topic:
                    continue
                wrong = "is empty"
            except UnicodeDecodeError:
                wrong = f"is {topic!r}, which is not UTF-8"
            raise self._no_topic(first + encoded.indices.index(number).as_py(), wrong)
        if len(topics) == 1:
            return [_Part(topics[0], batch, None)]
        return _split(batch, encoded.indices, topics)

    def _no_topic(self, row: int, wrong: str) -> SinkException:
        return SinkException(
            f'{self._where}, row {row}: the topic {wrong}: leave such rows out, or set option "topic" for all'
        )


def _split(batch: RecordBatch, numbers: Any, topics: list[str]) -> Iterator[_Part]:
    import pyarrow.compute as pc

    order = pc.array_sort_indices(numbers).cast("uint32")  # equal ones stay in order
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(numbers).to_pylist()}
    begin = 0
    for number, topic in enumerate(topics):
        rows = order.slice(begin, counts[number])
        yield _Part(topic, batch.take(rows), rows)
        begin += len(rows)


def _taken_along(error: KafkaError) -> bool:
    """A row that failed because another row of its transaction did."""
    return isinstance(error, TransactionAbortedException)


class _TopicStream:
    """The batches of one topic, for ``send_table``, and which rows of the task their rows were."""

    sending: asyncio.Task[BulkResult]

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.taken = asyncio.Event()
        """The producer has all rows."""
        self._waiting: asyncio.Queue[RecordBatch | None] = asyncio.Queue(1)
        self._count = 0
        self._begins: list[int] = []
        self._runs: list[tuple[int, Any]] = []
        """Of rows of one batch, or of whole batches that follow each other; each begins with the row of the topic that
        ``_begins`` has. The first row of that batch in the task, and the rows' places there if they are not all."""

    async def __aiter__(self) -> AsyncIterator[RecordBatch]:
        while (batch := await self._waiting.get()) is not None:
            yield batch
        self.taken.set()

    async def put(self, part: _Part, first: int) -> None:
        """``first`` is the number of the batch's first row in the task."""
        if part.rows is not None or not self._runs or self._row(self._count) != first:
            self._begins.append(self._count)
            self._runs.append((first, part.rows))
        self._count += part.batch.num_rows
        await self._waiting.put(part.batch)

    async def end(self) -> None:
        await self._waiting.put(None)

    def delivered(self) -> bool:
        """Whether every row is known to have been delivered."""
        sending = self.sending
        return sending.done() and sending.exception() is None and not sending.result().failed

    def failed(self) -> tuple[int, KafkaError] | None:
        """The first row of the task that was not delivered, and why; not one that failed only because another did."""
        result = self.sending.result()
        if not result.failed:
            return None
        causes = [failed for failed in result.errors if not _taken_along(failed[1])]
        index, error = (causes or result.errors)[0]
        return self._row(index), error

    def _row(self, index: int) -> int:
        """The number in the task of a row of the topic; -1 if its batch was not handed out completely."""
        at = bisect_right(self._begins, index) - 1
        first, rows = self._runs[at]
        place = index - self._begins[at]
        if rows is None:
            return int(first + place)
        return int(first + rows[place].as_py()) if place < len(rows) else -1
