"""Some records of a bulk send, and their way into the accumulator. Compiled when there is a compiler."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from aioproducer.errors import IllegalArgumentException, KafkaError, RecordTooLargeException, SerializationException
from aioproducer.producer.bulk_tally import BulkTally
from aioproducer.producer.record_accumulator import BATCH_OVERHEAD, RecordAccumulator
from aioproducer.records.record_writer import record_size_upper_bound


@final
class Rows:
    """Neighbours in the call, column by column as they were given; ``first`` is the first one's number there.

    A column that was not given is None.
    """

    def __init__(
        self,
        first: i64,
        values: list[Any],
        keys: list[Any] | None,
        partitions: list[Any] | None,
        timestamps_ms: list[Any] | None,
        headers: list[Any] | None,
    ) -> None:
        self.first = first
        self.count = len(values)
        self.values = values
        self.keys = keys
        self.partitions = partitions
        self.timestamps_ms = timestamps_ms
        self.headers = headers

    def record(self, at: i64) -> tuple[Any, Any, Any, Any, Any]:
        """Value, key, partition, timestamp and headers of one."""
        return (
            self.values[at],
            None if self.keys is None else self.keys[at],
            None if self.partitions is None else self.partitions[at],
            None if self.timestamps_ms is None else self.timestamps_ms[at],
            None if self.headers is None else self.headers[at],
        )

    def value_bytes(self) -> i64:
        """Bytes of the values that are bytes already."""
        total: i64 = 0
        for value in self.values:
            if isinstance(value, bytes):
                total += len(value)
        return total

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
        values = self.values
        keys = self.keys
        partitions = self.partitions
        timestamps_ms = self.timestamps_ms
        headers = self.headers
        only_values = keys is None and partitions is None and timestamps_ms is None and headers is None
        at = begin
        while at < self.count:
            if only_values:
                end = self._append_values(accumulator, topic, at, tally)
                if end > at:
                    at = end
                    continue
            try:
                delivery = accumulator.append(
                    topic,
                    None if keys is None else keys[at],
                    values[at],
                    None if partitions is None else partitions[at],
                    None if timestamps_ms is None else timestamps_ms[at],
                    None if headers is None else headers[at],
                )
            except (IllegalArgumentException, RecordTooLargeException, SerializationException) as error:
                refused.append((self.first + at, error))
            else:
                if delivery is None:
                    break
                tally.took(delivery._result, delivery._index, self.first + at)
            at += 1
        return at

    def _append_values(self, accumulator: RecordAccumulator, topic: str, begin: i64, tally: BulkTally) -> i64:
        """Appends what one batch has room for; ``begin`` again if its record cannot simply be appended."""
        first: object = self.values[begin]
        if first is not None and not isinstance(first, bytes):
            return begin
        queues = None if accumulator.detour else accumulator.topics.get(topic)
        if queues is None or not queues.queues:
            return begin
        bound = record_size_upper_bound(-1, -1 if first is None else len(first), None)
        if BATCH_OVERHEAD + bound > accumulator.largest_record():
            return begin
        partitioner = queues.partitioner
        timestamp = accumulator.now_ms()
        batch = accumulator.batch_for(partitioner, None, BATCH_OVERHEAD + bound, timestamp)
        if batch is None:
            return begin
        number = batch.count
        budget = bound if partitioner.current is None else bound + 2 * accumulator.batch_size - partitioner.produced
        end, taken = batch.append_values(timestamp, self.values, begin, budget)
        partitioner.produced_more(taken - bound, accumulator.batch_size)
        tally.took(batch.result, number, self.first + begin, end - begin)
        return end
