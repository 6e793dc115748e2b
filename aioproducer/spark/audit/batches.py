"""One row for each batch: what is the same for all its records, and which of them are there.

Rules about whole batches look here, at a hundredth of the rows. All aggregates have a fixed size, so Spark computes
them where the rows are, before any row moves.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SEQUENCES: Final = 1 << 31
"""How many sequences there are; 0 follows the last."""

PLACE: Final = ("topic", "partition", "batch_offset")


def batches(observations: DataFrame) -> DataFrame:
    """The batches. ``records`` are there, from ``first_offset`` to ``last_offset``; ``batch_records`` were."""
    in_batch = F.col("offset") - F.col("batch_offset")
    return observations.groupBy(*PLACE).agg(
        F.count("*").alias("records"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.max("batch_records").alias("batch_records"),
        F.max("batch_bytes").alias("batch_bytes"),
        F.max("producer_id").alias("producer_id"),
        F.max("producer_epoch").alias("producer_epoch"),
        # Sequences may start again in the middle of a batch.
        F.max(F.pmod(F.col("sequence") - in_batch, F.lit(SEQUENCES))).alias("base_sequence"),
        F.max("transactional").alias("transactional"),
        F.max("control").alias("control"),
        F.max("committed").alias("committed"),
        F.min("timestamp_ms").alias("first_ms"),
        F.max("timestamp_ms").alias("last_ms"),
        F.min("counter").alias("first_counter"),
        F.max("counter").alias("last_counter"),
    )
