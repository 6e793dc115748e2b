"""Offsets are consecutive: finds what was not read, and what was read twice."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.rows_before import rows_before
from aioproducer.spark.audit.rules.findings import findings_of


def wrong_offsets(batches: DataFrame, bounds: DataFrame) -> DataFrame:
    """Holes and repetitions in partitions that should have all offsets of ``bounds``: topic, partition, first, end.

    ``first`` is the first offset to be read, ``end`` follows the last. Compacted topics have holes.
    """
    spans = batches.select(
        "topic",
        "partition",
        F.col("first_offset").alias("begin"),
        (F.col("last_offset") + 1).alias("end"),
        "records",
    )
    edges = bounds.select("topic", "partition", F.col("first").alias("begin"), F.col("first").alias("end"))
    ends = bounds.select("topic", "partition", F.col("end").alias("begin"), "end")
    before = rows_before(Window.partitionBy("topic", "partition").orderBy("begin", "end"))
    all_spans = spans.unionByName(edges.unionByName(ends).withColumn("records", F.lit(0).cast("long")))
    read = all_spans.withColumn("read", F.max("end").over(before))
    return _between(read).unionByName(_within(spans))


def _between(read: DataFrame) -> DataFrame:
    missing = F.col("begin") - F.col("read")
    holes = findings_of(
        read.where(missing > 0),
        Kind.HOLE,
        F.format_string("offset %d follows %d", "begin", F.col("read") - 1),
        first_offset="read",
        last_offset=F.col("begin") - 1,
        records=missing,
    )
    twice = F.least("read", "end") - F.col("begin")
    return holes.unionByName(
        findings_of(
            read.where((F.col("begin") < F.col("read")) & (twice > 0)),
            Kind.DUPLICATE,
            F.lit("these offsets were read twice"),
            first_offset="begin",
            last_offset=F.least("read", "end") - 1,
            records=twice,
        )
    )


def _within(spans: DataFrame) -> DataFrame:
    """Batches with fewer or more records than offsets."""
    missing = F.col("end") - F.col("begin") - F.col("records")
    return findings_of(
        spans.where(missing != 0),
        F.when(missing > 0, Kind.HOLE.value).otherwise(Kind.DUPLICATE.value),
        F.format_string("%d records are there between these offsets", "records"),
        first_offset="begin",
        last_offset=F.col("end") - 1,
        records=F.abs(missing),
    )
