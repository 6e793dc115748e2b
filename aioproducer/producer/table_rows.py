"""Some rows of a table, and their way into the accumulator. Compiled when there is a compiler."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from aioproducer.errors import IllegalArgumentException, IllegalStateException, KafkaError, RecordTooLargeException
from aioproducer.producer.bulk_tally import BulkTally
from aioproducer.producer.murmur2 import partition_for_key_of
from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.record_accumulator import BATCH_OVERHEAD, RecordAccumulator
from aioproducer.records.record_columns import NumberColumn, RecordColumns


@final
class TableRows:
    """Neighbours in a table, as they lie in memory; ``first`` is the first one's number in the call."""

    def __init__(
        self,
        first: i64,
        count: i64,
        columns: RecordColumns,
        partitions: NumberColumn | None,
        timestamps_ms: NumberColumn | None,
        names: dict[str, str],
    ) -> None:
        self.first = first
        self.count = count
        self._columns = columns
        self._partitions = partitions
        self._timestamps_ms = timestamps_ms
        self._names = names
        """What the columns are called in the table, for errors."""

    def record(self, at: i64) -> tuple[Any, Any, Any, Any, Any]:
        """Value, key, partition, timestamp and headers of one, as objects; raises what is wrong with it."""
        error = self._error(at)
        if error is not None:
            raise error
        columns = self._columns
        partition: i64 = -1 if self._partitions is None else self._partitions.value(at)
        timestamp: i64 = -1 if self._timestamps_ms is None else self._timestamps_ms.value(at)
        return (
            columns.values.value(at),
            None if columns.keys is None else columns.keys.value(at),
            None if partition < 0 else partition,
            None if timestamp < 0 else timestamp,
            None if columns.headers is None else columns.headers.value(at),
        )

    def append_to(
        self,
        accumulator: RecordAccumulator,
        topic: str,
        begin: i64,
        tally: BulkTally,
        refused: list[tuple[int, KafkaError]],
    ) -> i64:
        """Appends rows from ``begin`` on, for as long as that needs no waiting; answers the first not looked at.

        What can never be sent is put into ``refused``, by its number in the call.
        """
        queues = None if accumulator.detour else accumulator.topics.get(topic)
        count: i64 = 0 if queues is None else len(queues.queues)
        columns = self._columns
        headers = columns.headers
        keys = None if accumulator.ignore_keys else columns.keys
        limit = accumulator.largest_record()
        now = accumulator.now_ms()
        at = begin
        while at < self.count:
            partition: i64 = -1 if self._partitions is None else self._partitions.value(at)
            timestamp: i64 = -1 if self._timestamps_ms is None else self._timestamps_ms.value(at)
            key_size = columns.key_size(at)
            value_size = columns.value_size(at)
            size = BATCH_OVERHEAD + columns.size_upper_bound(at, key_size, value_size)
            if partition < -1 or timestamp < -1 or size > limit or (headers is not None and headers.nameless(at)):
                error = self._error(at)
                refused.append((self.first + at, self._too_large(accumulator, at, size) if error is None else error))
                at += 1
                continue
            if queues is None or count == 0 or partition >= count:
                break
            queue: PartitionQueue | None = None
            if partition >= 0:
                queue = queues.queues[partition]
            elif keys is not None and key_size >= 0:
                queue = queues.queues[partition_for_key_of(keys.data, keys.begin(at), key_size, count)]
            if timestamp < 0:
                timestamp = now
            batch = accumulator.batch_for(queues.partitioner, queue, size, timestamp)
            if batch is None:
                break
            tally.took(batch.result, batch.count, self.first + at)
            batch.append_row(timestamp, columns, at, key_size, value_size)
            at += 1
        return at

    def _error(self, at: i64) -> KafkaError | None:
        """What is wrong with a row, but for its size."""
        if self._partitions is not None and self._partitions.value(at) < -1:
            return self._refused(
                at,
                "partition",
                f"the partition is {self._partitions.value(at)}; it must be a number from 0 on, "
                "or null or -1 to have it chosen",
            )
        if self._timestamps_ms is not None and self._timestamps_ms.value(at) < -1:
            return self._refused(
                at,
                "timestamp",
                f"the timestamp is {self._timestamps_ms.value(at)} ms; it must be 0 or more, or null or -1 for now",
            )
        headers = self._columns.headers
        if headers is not None and headers.nameless(at):
            return self._refused(at, "headers", "a header's name is null; it must be text")
        return None

    def _refused(self, at: i64, role: str, why: str) -> KafkaError:
        return IllegalArgumentException(f"row {self.first + at}, column {self._names[role]!r}: {why}")

    def _too_large(self, accumulator: RecordAccumulator, at: i64, size: i64) -> KafkaError:
        try:
            accumulator.check_size(size)
        except RecordTooLargeException as error:
            value_size = self._columns.value_size(at)
            return RecordTooLargeException(
                f"row {self.first + at}, column {self._names['value']!r} of {value_size} bytes: {error}"
            )
        raise IllegalStateException(f"{size} bytes are not too large")
