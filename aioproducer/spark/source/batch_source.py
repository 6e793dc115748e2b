"""``spark.read.format("aioproducer")``: reads what is in topics as one batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.for_tasks import ForTasks
from aioproducer.spark.source.offset_plan import impossible, ranges, split
from aioproducer.spark.source.offset_reader import OffsetReader
from aioproducer.spark.source.range_reader import read_range
from aioproducer.spark.source.source_options import LATEST, SourceOptions
from aioproducer.spark.source.source_schema import arrow_schema


class BatchReader(ForTasks, DataSourceReader):
    """Plans once, when the query is planned; then reads range by range, in tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = SourceOptions.of(options, streaming=False)
        self._schema = arrow_schema(schema)

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with closing(OffsetReader(options)) as reader:
            partitions = reader.partitions()
            ending, starting = options.ending.of(partitions), options.starting.of(partitions)
            ends = reader.resolve(ending, options.ending.option, latest_if_none=True)
            begins = reader.resolve(starting, options.starting.option, latest_if_none=options.latest_if_none)
            latest = reader.offsets([partition for partition, at in ending.items() if at.is_offset], LATEST)
        given = [partition for partition, at in starting.items() if at.is_offset]
        if wrong := impossible(begins, ends, given, latest, committed=options.read_committed):
            raise IllegalArgumentException(
                f'{"; ".join(wrong)}: see the options "{options.starting.option}" and "{options.ending.option}"'
            )
        # If retention deletes between the two questions, or times are in the wrong order, nothing is left to read.
        ends = {partition: max(end, begins[partition]) for partition, end in ends.items()}
        planned = split(ranges(begins, ends), options.min_partitions, options.max_records_per_partition)
        return [InputPartition(each) for each in planned]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(self._options, self._schema, partition)


def read_partition(options: SourceOptions, schema: Any, partition: InputPartition) -> Iterator[Any]:
    """The records of one planned partition; Spark plans one without a value if there is nothing to read."""
    if partition.value is None:
        return iter(())
    return read_range(options.configs, partition.value, schema, fail_on_data_loss=options.fail_on_data_loss)
