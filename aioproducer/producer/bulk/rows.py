"""Some records of a bulk send, and how they reach the accumulator."""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from aioproducer.errors import IllegalArgumentException, KafkaError, RecordTooLargeException, SerializationException
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.bulk.append import OPENING, WORK, append_rows
from aioproducer.producer.bulk.tally import BulkTally
from aioproducer.records.record_columns import ListColumn, RecordColumns

SINGLE: Final = 3
"""A record that is appended by itself takes as long as so many others."""


@final
class Rows:
    """Neighbouring records of a call, as given columns; ``first`` is the number of the first in the call.

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
        self._columns = RecordColumns(ListColumn(values), None if keys is None else ListColumn(keys), None)

    def record(self, at: i64) -> tuple[Any, Any, Any, Any, Any]:
        """Value, key, partition, timestamp and headers of one record."""
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
        """Appends rows from ``begin`` on without waiting, until WORK is done; returns the first row not handled.

        A row that can never be sent goes into ``refused``, by its number in the call.
        """
        values = self.values
        keys = self.keys
        partitions = self.partitions
        timestamps_ms = self.timestamps_ms
        headers = self.headers
        simple = partitions is None and timestamps_ms is None and headers is None
        at = begin
        left: i64 = WORK
        while at < self.count and left > 0:
            if simple:
                before = at
                at = append_rows(accumulator, topic, self._columns, at, self.count, self.first, tally)
                left -= (at - before) * OPENING
                if at == self.count:
                    break
            try:
                delivery = accumulator.append(
                    topic,
                    values[at],
                    None if keys is None else keys[at],
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
            left -= SINGLE
            at += 1
        return at
