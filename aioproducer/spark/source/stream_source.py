"""``spark.readStream.format("aioproducer")``: reads what arrives in topics, batch after batch."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from aioproducer.errors import IllegalArgumentException, OffsetOutOfRangeException
from aioproducer.spark.for_tasks import ForTasks
from aioproducer.spark.source.batch_source import read_partition
from aioproducer.spark.source.offset_plan import (
    OffsetsByTopic,
    ends_lost,
    from_json,
    limited,
    losses,
    readable,
    split,
    to_json,
    unread,
    waiting_offsets,
)
from aioproducer.spark.source.offset_reader import OffsetReader
from aioproducer.spark.source.source_options import SourceOptions
from aioproducer.spark.source.source_schema import arrow_schema
from aioproducer.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # before Spark 4.2 a stream's source learns of no limits and no triggers

        class SupportsTriggerAvailableNow: ...


log = logging.getLogger(__name__)


class StreamReader(ForTasks, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batch after batch, in a process of the driver that lives as long as the query; tasks read.

    Offsets are those of Spark's Kafka source, ``{"topic": {"0": 23}}``. They are kept in the query's checkpoint and
    nowhere else.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._given = options, schema
        self._reader: OffsetReader | None = None
        self._initial: dict[TopicPartition, int] = {}
        self._target: dict[TopicPartition, int] | None = None
        self._latest: dict[TopicPartition, int] | None = None
        self._last_batch = -inf
        """When it was planned, by ``time.monotonic``."""

    @cached_property
    def _checked(self) -> tuple[SourceOptions, pa.Schema]:
        """Options and columns, checked by the first call that plans: PySpark hides an error of the constructor behind
        an UnboundLocalError of its own."""
        given, schema = self._given
        options = SourceOptions.of(given, streaming=True)
        limits = {
            "maxOffsetsPerTrigger": options.max_offsets_per_trigger,
            "minOffsetsPerTrigger": options.min_offsets_per_trigger,
        }
        if not _has_limits() and (limited_by := [name for name, value in limits.items() if value is not None]):
            raise IllegalArgumentException(
                f'option "{limited_by[0]}" needs Spark 4.2 or newer: earlier versions do not pass the beginning '
                "of a batch to a source in Python"
            )
        return options, arrow_schema(schema)

    @property
    def _options(self) -> SourceOptions:
        return self._checked[0]

    # Planning

    def initialOffset(self) -> OffsetsByTopic:
        options, reader = self._options, self._cluster()
        positions = options.starting.of(reader.partitions())
        self._initial = reader.resolve(positions, options.starting.option, latest_if_none=options.latest_if_none)
        return to_json(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

        most, least = self._options.max_offsets_per_trigger, self._options.min_offsets_per_trigger
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def latestOffset(
        self, start: Mapping[str, Mapping[str, int]] | None = None, limit: ReadLimit | None = None
    ) -> OffsetsByTopic:
        """Where the next batch ends: at the present end, or earlier if ``limit`` demands it. Spark 4.1 has neither."""
        reader = self._cluster()
        if self._target is None:
            self._latest = reader.ends()
        ends = dict(self._target or self._latest or {})
        if start is None:
            return to_json(ends)
        begins = from_json(start)
        if self._options.fail_on_data_loss and (said := ends_lost(begins, ends)):
            # Now: an end that the checkpoint has once fails every start to come, though the topic may be back by then.
            raise _lost(said)
        max_rows: int | None = getattr(limit, "max_rows", None)
        if max_rows is None and not hasattr(limit, "min_rows"):
            return to_json(ends)  # Spark wants all that is there
        begins |= reader.beginnings(partition for partition in ends if partition not in begins)
        ends = {partition: ends[partition] for partition in ends if partition in begins}
        if self._is_too_early(waiting_offsets(begins, ends)):
            return to_json(from_json(start))
        self._last_batch = monotonic()
        return to_json(ends if max_rows is None else limited(begins, ends, max_rows))

    def _is_too_early(self, waiting: int) -> bool:
        """Whether fewer offsets than wanted are there, and the last batch was not too long ago. What is there when the
        query starts, and all that a query reads that then ends, is read at once."""
        least = self._options.min_offsets_per_trigger
        if least is None or waiting >= least or self._target is not None:
            return False
        return (monotonic() - self._last_batch) * 1000 < self._options.max_trigger_delay_ms

    def reportLatestOffset(self) -> OffsetsByTopic | None:
        return None if self._latest is None else to_json(self._latest)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._latest = self._cluster().ends()

    def partitions(
        self, start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
    ) -> Sequence[InputPartition]:
        if start == end:
            return []
        begins, ends = self._promised(from_json(start), from_json(end))
        earliest = self._cluster().beginnings(unread(begins, ends))
        said = losses(begins, ends, earliest)
        options = self._options
        if said and options.fail_on_data_loss:
            raise _lost(said)
        for loss in said:
            log.warning("data may have been lost: %s", loss)
        planned = split(readable(begins, ends, earliest), options.min_partitions, options.max_records_per_partition)
        return [InputPartition(each) for each in planned]

    def _promised(
        self, begins: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Both without the partitions whose beginning came after the end of a batch that is planned again.

        A query that was stopped before its first batch was committed looks its beginning up again, and "latest" has
        moved by then. The records in between were never promised.
        """
        for partition, begin in self._initial.items():
            if begins.get(partition) == begin > ends.get(partition, begin):
                del begins[partition], ends[partition]
        return begins, ends

    # Reading

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(*self._checked, partition)

    # The rest of the protocol

    def commit(self, end: Mapping[str, Mapping[str, int]]) -> None:
        """Does nothing: the checkpoint has the offsets, and there is no consumer group."""

    def stop(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _cluster(self) -> OffsetReader:
        if self._reader is None:
            self._reader = OffsetReader(self._options)
        return self._reader

    def __getstate__(self) -> dict[str, Any]:
        """What tasks need; they plan nothing."""
        return {"_checked": self._checked}


def _lost(said: Sequence[str]) -> OffsetOutOfRangeException:
    return OffsetOutOfRangeException(
        f"{'; '.join(said)}. With failOnDataLoss=false the query continues with what is left"
    )


def _has_limits() -> bool:
    """Whether Spark passes where a batch begins and how much it may contain."""
    return hasattr(DataSourceStreamReader, "getDefaultReadLimit")
