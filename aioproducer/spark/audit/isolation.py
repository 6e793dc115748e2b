"""A reader of committed records gets all of them, and no others."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.slices import PLACE
from aioproducer.spark.audit.tell import tell
from aioproducer.spark.audit.transactions import ABORTED, COMMITTED, NONE, OPEN


def wrongly_read(outcomes: DataFrame, committed: DataFrame, bounds: DataFrame) -> DataFrame:
    """``committed``: the batches, as far as a reader with isolation.level=read_committed was given them.

    It may read no further in a partition than to ``stable_end`` of ``bounds``, where the first open transaction began
    when it was asked. What was open then may have ended since, so that alone says what was to be read.
    """
    read = committed.where("NOT control").select(*PLACE, F.col("records").alias("given"))
    compared = (
        outcomes.join(read, list(PLACE), "left")
        .join(F.broadcast(bounds.select("topic", "partition", "stable_end")), ["topic", "partition"])
        .withColumn("given", F.coalesce("given", F.lit(0)))
    )
    aborted = tell(
        compared.where(F.col("outcome").isin(ABORTED, OPEN) & (F.col("given") > 0)),
        Kind.ABORTED_READ,
        F.format_string("of a transaction that is %s", "outcome"),
        records="given",
    )
    missed = F.col("records") - F.col("given")
    may_be_read = F.col("first_offset") < F.col("stable_end")
    unread = tell(
        compared.where(F.col("outcome").isin(COMMITTED, NONE) & may_be_read & (missed > 0)),
        Kind.UNREAD,
        F.format_string("%d of %d records were read", "given", "records"),
        records=missed,
    )
    return aborted.unionByName(unread)
