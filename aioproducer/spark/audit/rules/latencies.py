"""Delivery times of records, by the minute of sending: exact quantiles, from counts of milliseconds."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.counts import TIMES, acknowledged_times
from aioproducer.spark.audit.options import QUANTILES, AuditOptions, quantile_name
from aioproducer.spark.audit.rules.findings import findings_of

APPENDED: Final = "appended"
"""From the stamp to the timestamp that the broker gave the record."""
ACKNOWLEDGED: Final = "acknowledged"
"""From the stamp to the acknowledgement, by the delivery log; for all topics together."""

_GROUP: Final = ("topic", "what", "minute_ms")


def latencies(counts: DataFrame, events: DataFrame | None = None, bounds: DataFrame | None = None) -> DataFrame:
    """topic (null: all), what, minute_ms, records, and milliseconds: p50, p95, p99, p100.

    Of ``events``, those of topics in ``bounds`` count.
    """
    columns = (*_GROUP, "took", "records")
    counted = counts.where(F.col("counted") == TIMES).withColumn("what", F.lit(APPENDED)).select(*columns)
    if events is not None and bounds is not None:
        acknowledged = acknowledged_times(events, bounds)
        counted = counted.unionByName(
            acknowledged.withColumn("topic", F.lit(None).cast("string"))
            .withColumn("what", F.lit(ACKNOWLEDGED))
            .select(*columns)
        )
    group = Window.partitionBy(*_GROUP)
    rising = group.orderBy("took").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    placed = counted.withColumn("up_to", F.sum("records").over(rising)).withColumn("all", F.sum("records").over(group))
    return placed.groupBy(*_GROUP).agg(
        F.max("all").alias("records"),
        *(F.min(_if_reached(quantile)).alias(quantile_name(quantile)) for quantile in QUANTILES),
    )


def _if_reached(quantile: float) -> Column:
    return F.when(F.col("up_to") >= F.ceil(F.col("all") * quantile), F.col("took"))


def late_minutes(latencies: DataFrame, options: AuditOptions) -> DataFrame:
    """Minutes in which more than one record of a hundred took too long."""
    return findings_of(
        latencies.where(F.col("p99") > options.latency_ms),
        Kind.LATE,
        F.format_string(
            "%s: 99 of 100 records within %d ms, of those sent in the minute from %s UTC on",
            "what",
            "p99",
            F.timestamp_millis("minute_ms").cast("string"),
        ),
        records="records",
    )
