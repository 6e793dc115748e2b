"""What delivery logs say of single records: the events that rules compare with the records that are there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def logged_records(events: DataFrame, bounds: DataFrame, now_ms: int) -> DataFrame:
    """The events ``sent``, ``acked`` and ``failed`` of numbered records, with two more columns.

    ``audited``: the record's topic is one of those in ``bounds``. ``due``: the record was acknowledged, and must still
    be there.
    """
    topics = F.broadcast(bounds.select("topic").distinct().withColumn("audited", F.lit(True)))
    first = F.broadcast(bounds.select("topic", "partition", "first"))
    # What was before the first offset may have been deleted properly; for an unknown offset that cannot be known.
    kept = F.when(F.col("offset") < 0, F.col("first") == 0).otherwise(F.col("offset") >= F.col("first"))
    due = (F.col("event") == "acked") & F.coalesce(kept, F.lit(True)) & (F.col("time_ms") < now_ms)
    return (
        events.where("counter IS NOT NULL AND event IN ('sent', 'acked', 'failed')")
        .join(topics, "topic", "left")
        .join(first, ["topic", "partition"], "left")
        .withColumn("audited", F.coalesce("audited", F.lit(False)))
        .withColumn("due", F.col("audited") & due)
        .drop("first")
    )
