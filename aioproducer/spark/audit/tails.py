"""What a streaming audit keeps of what it has seen: the end of each partition, and each producer's last place there."""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aioproducer.spark.audit import sequences
from aioproducer.spark.audit.small import small_frame

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
    """An observation for each stream in each partition, with its highest number."""


def no_tails(observations: DataFrame, batches: DataFrame) -> Tails:
    """Empty tails, before anything was seen; with the columns of these."""
    spark = observations.sparkSession
    return Tails(
        small_frame(spark, [], "topic string, partition int, first long, end long"),
        small_frame(spark, [], _seen(batches, 0).schema),
        small_frame(spark, [], _seen(observations, 0).schema),
    )


def after(tails: Tails, observations: DataFrame, batches: DataFrame, now_ms: int) -> Tails:
    """The tails after these, which follow them, have been seen."""
    due = batches.select("topic", "partition", (F.col("last_offset") + 1).alias("end"))
    ends = due.unionByName(tails.bounds.select("topic", "partition", "end")).groupBy("topic", "partition")
    stamped = observations.where("stream IS NOT NULL AND counter IS NOT NULL")
    highest = (
        _seen(stamped, now_ms)
        .unionByName(tails.streams)
        .groupBy("topic", "partition", "stream")
        .agg(F.max("counter").alias("counter"), F.max("offset").alias("offset"), F.max("seen_ms").alias("seen_ms"))
    )
    remembered = F.col("seen_ms") > now_ms - FORGOTTEN_AFTER_MS
    return Tails(
        ends.agg(F.max("end").alias("end")).select("topic", "partition", F.col("end").alias("first"), "end"),
        sequences.newest(_seen(batches, now_ms).unionByName(tails.batches)).where(remembered),
        tails.streams.limit(0).unionByName(highest.where(remembered), allowMissingColumns=True),
    )


def kept(spark: SparkSession, tails: Tails) -> Tails:
    """The same, computed and held by the driver, so that the next ones do not depend on everything before."""
    return Tails(*(small_frame(spark, table.collect(), table.schema) for table in tails))


def _seen(rows: DataFrame, now_ms: int) -> DataFrame:
    return rows.withColumn("seen_ms", F.lit(now_ms).cast("long"))
