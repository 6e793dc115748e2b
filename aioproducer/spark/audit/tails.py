"""The state of a streaming audit: the end of each partition, and each producer's last place there."""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aioproducer.spark.audit.frames.batches import batches
from aioproducer.spark.audit.frames.local_frame import local_frame
from aioproducer.spark.audit.frames.observations import observe, source_schema
from aioproducer.spark.audit.frames.pieces import pieces
from aioproducer.spark.audit.frames.slices import slices
from aioproducer.spark.audit.rules import sequences

FORGOTTEN_AFTER_MS: Final = 86_400_000
"""How long a producer that writes nothing is remembered: as long as by brokers (producer.id.expiration.ms), which then
accept any sequence from it."""


class Tails(NamedTuple):
    """Three tables whose size depends on partitions and on the producers of a day, not on records. The column
    ``seen_ms`` says when a row was seen."""

    bounds: DataFrame
    """The next offset in each partition, as ``first`` and ``end``."""
    batches: DataFrame
    """The furthest batch of each producer in each partition."""
    streams: DataFrame
    """A slice for each stream in each partition, with its highest number."""


def no_tails(spark: SparkSession) -> Tails:
    """Empty tails, before anything was seen."""
    columns = (F.lit(None).cast(field.dataType).alias(field.name) for field in source_schema(values=False))
    of_nothing = slices(pieces(observe(spark.range(0).select(*columns))))
    return Tails(
        local_frame(spark, [], "topic string, partition int, first long, end long"),
        local_frame(spark, [], _seen(batches(of_nothing), 0).schema),
        local_frame(spark, [], _seen(of_nothing, 0).schema),
    )


def after(tails: Tails, slices: DataFrame, batches: DataFrame, now_ms: int) -> Tails:
    """The tails after these, which follow them, have been seen."""
    due = batches.select("topic", "partition", (F.col("last_offset") + 1).alias("end"))
    ends = due.unionByName(tails.bounds.select("topic", "partition", "end")).groupBy("topic", "partition")
    stamped = slices.where("stream IS NOT NULL AND last_counter IS NOT NULL")
    highest = (
        _seen(stamped, now_ms)
        .unionByName(tails.streams)
        .groupBy("topic", "partition", "stream")
        .agg(
            F.max("last_counter").alias("last_counter"),
            F.max("last_counter").alias("first_counter"),
            F.max("last_offset").alias("first_offset"),
            F.max("last_offset").alias("last_offset"),
            F.lit(True).alias("in_order"),
            F.max("seen_ms").alias("seen_ms"),
        )
    )
    remembered = F.col("seen_ms") > now_ms - FORGOTTEN_AFTER_MS
    return Tails(
        ends.agg(F.max("end").alias("end")).select("topic", "partition", F.col("end").alias("first"), "end"),
        sequences.newest(_seen(batches, now_ms).unionByName(tails.batches)).where(remembered),
        tails.streams.limit(0).unionByName(highest.where(remembered), allowMissingColumns=True),
    )


class KeptTails:
    """The tails after each micro-batch, in a directory of the query's checkpoint: never in the driver's memory.

    There are two places, which take turns. So a micro-batch that is taken again, because the query was stopped in the
    middle of it, still finds what it was judged by before.
    """

    def __init__(self, place: str) -> None:
        self._place = place

    def before(self, spark: SparkSession, number: int) -> Tails:
        """What micro-batch ``number`` is judged by."""
        nothing = no_tails(spark)
        if number == 0:
            return nothing
        read = zip(Tails._fields, nothing, strict=True)
        return Tails(*(spark.read.schema(table.schema).parquet(self._path(number - 1, name)) for name, table in read))

    def keep(self, number: int, tails: Tails) -> None:
        """Those after micro-batch ``number``."""
        for name, table in zip(Tails._fields, tails, strict=True):
            table.coalesce(1).write.mode("overwrite").parquet(self._path(number, name))

    def _path(self, number: int, name: str) -> str:
        return f"{self._place}/{number % 2}/{name}.parquet"


def _seen(rows: DataFrame, now_ms: int) -> DataFrame:
    return rows.withColumn("seen_ms", F.lit(now_ms).cast("long"))
