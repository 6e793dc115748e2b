"""Keys: how often each occurs, and in how many partitions."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.counts import KEYS
from aioproducer.spark.audit.rules.findings import findings_of


def keys(counts: DataFrame) -> DataFrame:
    """One row for each key of each topic: topic, key, records, low and high (the partitions it is in)."""
    return counts.where(F.col("counted") == KEYS).select("topic", "key", "records", "low", "high")


def split_keys(keys: DataFrame) -> DataFrame:
    """Keys in more than one partition."""
    return findings_of(
        keys.where("low < high"),
        Kind.SPLIT_KEY,
        F.format_string("in partitions %d and %d, for example", "low", "high"),
    )
