"""Delivery times of records, by the minute of sending: exact quantiles, from counts of milliseconds."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.options import QUANTILES, AuditOptions, quantile_name
from aioproducer.spark.audit.rules.findings import findings_of

APPENDED: Final = "appended"
"""From the stamp to the timestamp that the broker gave the record."""
ACKNOWLEDGED: Final = "acknowledged"
"""From the stamp to the acknowledgement, by the delivery log; for all topics together."""

_MINUTE: Final = 60_000
_GROUP: Final = ("topic", "what", "minute_ms")


def latencies(observations: DataFrame, events: DataFrame | None = None, bounds: DataFrame | None = None) -> DataFrame:
    """topic (null: all), what, minute_ms, records, and milliseconds: p50, p95, p99, p100.

    From one second on, milliseconds are rounded up to tens. Records with their producer's own timestamp do not show
    when they were appended. Of ``events``, those of topics in ``bounds`` count.
    """
    taken = observations.where("appended AND sent_ms IS NOT NULL").select(
        "topic",
        F.lit(APPENDED).alias("what"),
        "sent_ms",
        (F.col("timestamp_ms") - F.col("sent_ms")).alias("took"),
    )
    if events is not None and bounds is not None:
        audited = F.broadcast(bounds.select("topic").distinct())
        acknowledged = events.where("event = 'acked' AND sent_ms IS NOT NULL").join(audited, "topic", "left_semi")
        taken = taken.unionByName(
            acknowledged.select(
                F.lit(None).cast("string").alias("topic"),
                F.lit(ACKNOWLEDGED).alias("what"),
                "sent_ms",
                (F.col("time_ms") - F.col("sent_ms")).alias("took"),
            )
        )
    return _quantiles(taken)


def _quantiles(taken: DataFrame) -> DataFrame:
    coarse = (F.ceil(F.col("took") / 10) * 10).cast("long")
    counted = (
        taken.withColumn("minute_ms", F.col("sent_ms") - F.pmod("sent_ms", F.lit(_MINUTE)))
        .withColumn("took", F.when(F.col("took") < 1000, F.greatest("took", F.lit(0))).otherwise(coarse))
        .groupBy(*_GROUP, "took")
        .agg(F.count("*").alias("records"))
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
