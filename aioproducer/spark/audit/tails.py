"""What a streaming audit keeps of all that went by: the end of each partition, and each producer's last place there."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aioproducer.spark.audit import sequences
from aioproducer.spark.audit.bounds import BOUNDS_SCHEMA
from aioproducer.spark.audit.small import small_frame


class Tails(NamedTuple):
    """Three tables whose size goes by partitions and producers, not by records."""

    bounds: DataFrame
    """The next offset in each partition, as ``first`` and ``end``."""
    batches: DataFrame
    """The furthest batch of each producer in each partition."""
    streams: DataFrame
    """An observation for each stream in each partition, with its highest number."""


def no_tails(observations: DataFrame, batches: DataFrame) -> Tails:
    """Before anything went by; with the columns of these."""
    spark = observations.sparkSession
    return Tails(
        small_frame(spark, [], BOUNDS_SCHEMA),
        small_frame(spark, [], batches.schema),
        small_frame(spark, [], observations.schema),
    )


def after(tails: Tails, observations: DataFrame, batches: DataFrame) -> Tails:
    """The tails when these, which follow them, have gone by."""
    due = batches.select("topic", "partition", (F.col("last_offset") + 1).alias("end"))
    ends = due.unionByName(tails.bounds.select("topic", "partition", "end")).groupBy("topic", "partition")
    stamped = observations.where("stream IS NOT NULL AND counter IS NOT NULL").unionByName(tails.streams)
    highest = stamped.groupBy("topic", "partition", "stream").agg(
        F.max("counter").alias("counter"), F.max("offset").alias("offset")
    )
    empty = observations.limit(0)
    return Tails(
        ends.agg(F.max("end").alias("end")).select("topic", "partition", F.col("end").alias("first"), "end"),
        sequences.newest(batches.unionByName(tails.batches)),
        empty.unionByName(highest, allowMissingColumns=True),
    )


def kept(spark: SparkSession, tails: Tails) -> Tails:
    """The same, worked out and held by the driver, so that the next ones do not depend on all that went before."""
    return Tails(*(small_frame(spark, table.collect(), table.schema) for table in tails))
