"""The events of delivery logs, as columns (``docs/schemas.md``), from files or from a topic; and those of single
records, which rules compare with the records that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

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


def logged_records(events: DataFrame, bounds: DataFrame, now_ms: int) -> DataFrame:
    """The events ``sent``, ``acked`` and ``failed`` of numbered records, with two more columns.

    ``audited``: the record's topic is one of those in ``bounds``. ``due``: the record was acknowledged, and must still
    be there.
    """
    topics = F.broadcast(bounds.select("topic").distinct().withColumn("audited", F.lit(True)))
    first = F.broadcast(bounds.select("topic", "partition", "first"))
    # What was before the first offset may have been deleted properly; for an unknown offset that cannot be known.
    kept = F.when(F.col("offset") < 0, F.col("first") == 0).otherwise(F.col("offset") >= F.col("first"))
    due = (F.col("event") == "acked") & F.coalesce(kept, F.lit(True)) & (F.col("time_ms") < now_ms)
    return (
        events.where("counter IS NOT NULL AND event IN ('sent', 'acked', 'failed')")
        .join(topics, "topic", "left")
        .join(first, ["topic", "partition"], "left")
        .withColumn("audited", F.coalesce("audited", F.lit(False)))
        .withColumn("due", F.col("audited") & due)
        .drop("first")
    )
