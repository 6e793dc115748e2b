"""Sizes of batches, by topic."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def batch_sizes(outcomes: DataFrame) -> DataFrame:
    """One row for each topic: batches, and of a batch's records and bytes average, median and largest."""
    figures = []
    for column, name in (("batch_records", "records"), ("batch_bytes", "bytes")):
        figures += [
            F.avg(column).alias(f"{name}_avg"),
            F.percentile_approx(column, 0.5).alias(f"{name}_median"),
            F.max(column).alias(f"{name}_max"),
        ]
    return outcomes.groupBy("topic").agg(F.count("*").alias("batches"), *figures)
