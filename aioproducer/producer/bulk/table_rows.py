"""Some rows of a table, and how they reach the accumulator."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from aioproducer.errors import IllegalArgumentException, KafkaError, RecordTooLargeException
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.bulk.append import append_rows
from aioproducer.producer.bulk.tally import BulkTally
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_columns import NumberColumn, RecordColumns
from aioproducer.records.record_writer import MAX_RECORD_OVERHEAD


@final
class TableRows:
    """Neighbouring rows of a table, in its memory; ``first`` is the number of the first in the call."""

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
        """The columns' names in the table, for errors."""

    def record(self, at: i64) -> tuple[Any, Any, Any, Any, Any]:
        """Value, key, partition, timestamp and headers of one row, as objects; raises if the row is invalid."""
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
        """Appends rows from ``begin`` on without waiting, until much is done; returns the first row not handled.

        A row that can never be sent goes into ``refused``, by its number in the call.
        """
        at = begin
        while True:
            at = append_rows(
                accumulator,
                topic,
                self._columns,
                at,
                self.count,
                self.first,
                tally,
                self._partitions,
                self._timestamps_ms,
            )
            error = None if at == self.count else self._error(at) or self._too_large(accumulator, at)
            if error is None:
                return at
            refused.append((self.first + at, error))
            at += 1

    def _error(self, at: i64) -> KafkaError | None:
        """Why a row is invalid, apart from its size."""
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
            return self._refused(at, "headers", "a header's name is null or not UTF-8; it must be text")
        return None

    def _refused(self, at: i64, role: str, why: str) -> KafkaError:
        return IllegalArgumentException(f"row {self.first + at}, column {self._names[role]!r}: {why}")

    def _too_large(self, accumulator: RecordAccumulator, at: i64) -> KafkaError | None:
        columns = self._columns
        key_size, value_size = columns.key_size(at), columns.value_size(at)
        try:
            accumulator.check_size(BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + columns.rest(at, key_size, value_size))
        except RecordTooLargeException as error:
            return RecordTooLargeException(
                f"row {self.first + at}, column {self._names['value']!r} of {value_size} bytes: {error}"
            )
        return None
