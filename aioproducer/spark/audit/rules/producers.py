"""Producers: what each wrote, in which epochs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def producers(outcomes: DataFrame) -> DataFrame:
    """One row for each producer id (null: all without one): records, batches, epochs, aborted records, and the first
    and last timestamp."""
    return outcomes.groupBy("producer_id").agg(
        F.sum("records").alias("records"),
        F.count("*").alias("batches"),
        F.min("producer_epoch").alias("first_epoch"),
        F.max("producer_epoch").alias("last_epoch"),
        F.coalesce(F.sum(F.when(F.col("outcome") == "aborted", F.col("records"))), F.lit(0)).alias("aborted"),
        F.min("first_ms").alias("first_ms"),
        F.max("last_ms").alias("last_ms"),
    )
