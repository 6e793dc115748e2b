"""The reports of a metrics topic (``docs/schemas.md``), as columns, and what they say of in-flight windows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.metrics.metric_name import PARTITION_GROUP
from aioproducer.metrics_topic import SCHEMA

_BY_PARTITION = "map<string,map<string,map<string,double>>>"
_REPORT = (
    "schema int, client_id string, instance string, number long, time_ms long, interval_ms long, last boolean, "
    "health array<struct<metric:string,value:double,threshold:double,severity:string,what_to_do:string>>, "
    f"metrics struct<`{PARTITION_GROUP}`:{_BY_PARTITION}>"
)


def metrics_reports(source: DataFrame) -> DataFrame:
    """The reports in the column ``value``; other records, and reports of a newer schema, are skipped."""
    parsed = source.select(F.from_json(F.col("value").cast("string"), _REPORT).alias("report")).select("report.*")
    return (
        parsed.where(F.col("instance").isNotNull() & (F.col("schema") <= SCHEMA))
        .withColumn("partitions", F.col("metrics")[PARTITION_GROUP])
        .drop("schema", "metrics")
    )


def windows(reports: DataFrame) -> DataFrame:
    """One row for each partition whose leader announced a window (KIP-1269): smallest and largest window, and the most
    batches that were in flight in any report."""
    by_topic = reports.select(F.explode("partitions").alias("topic", "of_topic"))
    by_partition = by_topic.select("topic", F.explode("of_topic").alias("partition", "figures"))
    window, in_flight = F.col("figures")["in-flight-window"], F.col("figures")["batches-in-flight"]
    return by_partition.groupBy("topic", F.col("partition").cast("int").alias("partition")).agg(
        F.min(window).cast("long").alias("smallest"),
        F.max(window).cast("long").alias("largest"),
        F.max(in_flight).cast("long").alias("in_flight"),
    )
