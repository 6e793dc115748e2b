"""One row for each batch and each stream with records in it: what rules need of records, at a hundredth of the rows.

A batch usually has records of one stream, so there are hardly more slices than batches. All aggregates have a fixed
size, so Spark computes them where the rows are, before any row moves.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SEQUENCES: Final = 1 << 31
"""How many sequences there are; 0 follows the last."""

PLACE: Final = ("topic", "partition", "batch_offset")

SLICE: Final = (*PLACE, "stream")


def slices(observations: DataFrame) -> DataFrame:
    """The slices. ``records`` are there, from ``first_offset`` to ``last_offset``; ``batch_records`` were in the batch.

    ``in_order``: the numbers of the stream rise one by one with the offsets. If not, they may still be in order.
    """
    in_batch = F.col("offset") - F.col("batch_offset")
    lead = F.col("counter") - F.col("offset")
    return observations.groupBy(*SLICE).agg(
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
        (F.min(lead) == F.max(lead)).alias("in_order"),
    )
