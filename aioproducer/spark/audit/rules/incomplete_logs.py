"""Delivery logs with lines that are lost or torn."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.events import TORN
from aioproducer.spark.audit.rules.findings import findings_of


def incomplete_logs(events: DataFrame) -> DataFrame:
    """One finding if lines are missing: those that a FileSink counted as lost, and torn ones."""
    counted = events.where(F.col("event").isin("lost", TORN)).agg(
        F.coalesce(F.sum("count"), F.lit(0)).alias("lost"),
        F.count_if(F.col("event") == TORN).alias("torn"),
    )
    return findings_of(
        counted.where("lost + torn > 0"),
        Kind.INCOMPLETE_LOG,
        F.format_string("%d lines were lost, %d broke off", "lost", "torn"),
        records=F.col("lost") + F.col("torn"),
    )
