"""A reader of committed records gets all of them, and no others."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.pieces import PLACE
from aioproducer.spark.audit.rules.findings import findings_of
from aioproducer.spark.audit.rules.transactions import ABORTED, COMMITTED, NONE, OPEN

GIVEN_COLUMNS: Final = ("topic", "partition", "batch")
"""What is needed of the records that a reader of committed records was given."""


def given(committed: DataFrame) -> DataFrame:
    """How many records such a reader was given of each batch; ``committed`` has at least ``GIVEN_COLUMNS``."""
    return (
        committed.where("NOT batch.control")
        .groupBy("topic", "partition", F.col("batch.baseOffset").alias("batch_offset"))
        .agg(F.count("*").alias("given"))
    )


def wrongly_read(outcomes: DataFrame, read: DataFrame, bounds: DataFrame) -> DataFrame:
    """``read``: how many records of each batch a reader with isolation.level=read_committed was ``given``.

    It may read no further in a partition than to ``stable_end`` of ``bounds``, where the first open transaction began
    when the audit began. What was open then may have ended since, so that alone says what was to be read.
    """
    compared = (
        outcomes.join(read, list(PLACE), "left")
        .join(F.broadcast(bounds.select("topic", "partition", "stable_end")), ["topic", "partition"])
        .withColumn("given", F.coalesce("given", F.lit(0)))
    )
    aborted = findings_of(
        compared.where(F.col("outcome").isin(ABORTED, OPEN) & (F.col("given") > 0)),
        Kind.ABORTED_READ,
        F.format_string("of a transaction that is %s", "outcome"),
        records="given",
    )
    missed = F.col("records") - F.col("given")
    may_be_read = F.col("first_offset") < F.col("stable_end")
    unread = findings_of(
        compared.where(F.col("outcome").isin(COMMITTED, NONE) & may_be_read & (missed > 0)),
        Kind.UNREAD,
        F.format_string("%d of %d records were read", "given", "records"),
        records=missed,
    )
    return aborted.unionByName(unread)
