"""One row for each batch, stream and span: all that rules need of records besides keys and latencies, in one scan.

A batch usually has numbers of one stream and of one span, so there are hardly more pieces than batches. Slices and
spans are both sums of pieces. All aggregates have a fixed size, so Spark computes them where the rows are, before any
row moves.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

SEQUENCES: Final = 1 << 31
"""How many sequences there are; 0 follows the last."""

PLACE: Final = ("topic", "partition", "batch_offset")

SLICE: Final = (*PLACE, "stream")

SPAN: Final = ("stream", "span")

RECORD_AT: Final = ("counter", "topic", "partition", "offset")
"""A record of a stream, and its place."""

_BITS: Final = 12
"""A span has 4096 numbers."""

_UNUSED: Final = 16
"""Bits of a digest that are dropped, so that the sum of a span fits into 64 bits."""


def span() -> Column:
    """The span of a number."""
    return F.shiftright("counter", _BITS).alias("span")


def pieces(observations: DataFrame) -> DataFrame:
    """The pieces. ``records`` are there, from ``first_offset`` to ``last_offset``; ``batch_records`` were in the batch.

    ``least_lead`` and ``most_lead``: by how much numbers exceed offsets. ``numbers`` and ``places`` are sums of digests
    of stamped records.
    """
    in_batch = F.col("offset") - F.col("batch_offset")
    lead = F.col("counter") - F.col("offset")
    numbered = F.col("counter").isNotNull()
    return observations.groupBy(*SLICE, span()).agg(
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
        F.min(lead).alias("least_lead"),
        F.max(lead).alias("most_lead"),
        sum_of("counter", where=numbered).alias("numbers"),
        sum_of(*RECORD_AT, where=numbered).alias("places"),
    )


def digest(*columns: Column | str) -> Column:
    """48 bits."""
    return F.shiftrightunsigned(F.xxhash64(*columns), _UNUSED)


def sum_of(*columns: str, where: Column | None = None) -> Column:
    """The sum of digests. Null if it does not fit, which takes thousands of copies of each record."""
    each = digest(*columns)
    return F.try_sum(each if where is None else F.when(where, each).otherwise(0))
