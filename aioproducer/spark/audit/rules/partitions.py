"""Partitions compared: records, batches, bytes; and whether one has many times what others have."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.rules.findings import findings_of


def partitions(outcomes: DataFrame, bounds: DataFrame) -> DataFrame:
    """One row for each partition in ``bounds``: topic, partition, first, end, records, batches, bytes, aborted."""
    counted = outcomes.groupBy("topic", "partition").agg(
        F.sum("records").alias("records"),
        F.count("*").alias("batches"),
        F.sum(F.col("batch_bytes").cast("long")).alias("bytes"),
        F.sum(F.when(F.col("outcome") == "aborted", F.col("records"))).alias("aborted"),
    )
    found = bounds.join(counted, ["topic", "partition"], "left")
    return found.fillna(0, ["records", "batches", "bytes", "aborted"])


def skewed_partitions(partitions: DataFrame, options: AuditOptions) -> DataFrame:
    """Partitions with more than ``options.skew`` times the records of the topic's average partition."""
    topic = Window.partitionBy("topic")
    compared = partitions.withColumn("all", F.sum("records").over(topic)).withColumn(
        "times",
        F.try_divide("records", F.avg("records").over(topic)),  # NULL for a topic without records
    )
    return findings_of(
        compared.where((F.col("times") > options.skew) & (F.col("all") >= options.skew_records)),
        Kind.SKEW,
        F.format_string("%.1f times the records of the average partition", "times"),
        records="records",
    )
