"""Topics through the data source, with the columns that an audit needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from aioproducer.spark import register
from aioproducer.spark.audit.frames.bounds import Bound
from aioproducer.spark.audit.frames.observations import schema_of, source_schema
from aioproducer.spark.audit.rules.isolation import GIVEN_COLUMNS
from aioproducer.spark.source.offset_plan import Offsets, to_json


class Source:
    """A cluster as Spark reads it; ``config`` are client configs in Kafka's names, bootstrap.servers among them."""

    def __init__(self, spark: SparkSession, config: Mapping[str, str]) -> None:
        register(spark)
        self._spark = spark
        self._options = {f"kafka.{name}": value for name, value in config.items()}

    def records(self, bounds: Sequence[Bound], *, values: bool = False) -> DataFrame:
        """All records within the bounds, including the markers of transactions."""
        ends = {bound.place: bound.end for bound in bounds}
        return self._within(bounds, ends, "read_uncommitted", source_schema(values=values))

    def committed_records(self, bounds: Sequence[Bound]) -> DataFrame:
        """What a reader of committed records gets of them, up to the first open transaction."""
        ends = {bound.place: bound.stable_end for bound in bounds}
        return self._within(bounds, ends, "read_committed", schema_of(GIVEN_COLUMNS))

    def _within(self, bounds: Sequence[Bound], ends: Offsets, level: str, schema: StructType) -> DataFrame:
        topics = sorted({bound.topic for bound in bounds})
        return (
            self._with_batches(self._spark.read, topics, schema)
            .option("startingOffsets", json.dumps(to_json({bound.place: bound.first for bound in bounds})))
            .option("endingOffsets", json.dumps(to_json(ends)))
            .option("kafka.isolation.level", level)
            .load()
        )

    def values(self, topic: str) -> DataFrame:
        """The values of all records that a topic has now."""
        return self._values(self._spark.read, topic).option("startingOffsets", "earliest").load()

    def record_stream(self, topics: Sequence[str], start: str) -> DataFrame:
        """The records of topics as they arrive, from ``earliest`` or ``latest`` on."""
        reader = self._with_batches(self._spark.readStream, topics, source_schema(values=False))
        return reader.option("startingOffsets", start).load()

    def value_stream(self, topic: str, start: str) -> DataFrame:
        """The values of a topic's records as they arrive."""
        return self._values(self._spark.readStream, topic).option("startingOffsets", start).load()

    def _with_batches(self, reader: Any, topics: Sequence[str], schema: StructType) -> Any:
        reader = reader.format("aioproducer").options(**self._options).option("subscribe", ",".join(topics))
        reader = reader.option("includeHeaders", True).option("includeBatch", True)
        return reader.schema(schema)

    def _values(self, reader: Any, topic: str) -> Any:
        reader = reader.format("aioproducer").options(**self._options).option("subscribe", topic)
        return reader.schema("value binary")
