"""The events of delivery logs, as columns (``docs/schemas.md``), from files or from a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.findings import findings_of

TORN: Final = "torn"
"""The event for a line that is not an event: torn, or something else altogether."""

_SCHEMA = (
    "event string, stream string, counter long, time_ms long, sent_ms long, topic string, partition int, offset long, "
    "outcome string, count long"
)


def events_of_files(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Files with lines of JSON, or directories or patterns of files; also compressed ones."""
    return _parsed(spark.read.text(list(paths)).where("value <> ''"))


def events_of_topic(source: DataFrame) -> DataFrame:
    """The records of a TopicSink's topic."""
    return _parsed(source.select(F.col("value").cast("string").alias("value")))


def _parsed(lines: DataFrame) -> DataFrame:
    parsed = lines.select(F.from_json("value", _SCHEMA).alias("parsed")).select("parsed.*")
    return parsed.withColumn("event", F.coalesce("event", F.lit(TORN)))


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
