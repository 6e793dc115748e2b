"""A reader of committed records gets all of them, and no others."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.batches import PLACE
from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.tell import tell
from aioproducer.spark.audit.transactions import ABORTED, COMMITTED, NONE, OPEN


def wrongly_read(outcomes: DataFrame, committed: DataFrame) -> DataFrame:
    """``committed``: the batches, as far as a reader with isolation.level=read_committed was given them.

    It may read no further in a partition than the first record of a transaction that is open.
    """
    stable_end = (
        outcomes.where(F.col("outcome") == OPEN)
        .groupBy("topic", "partition")
        .agg(F.min("first_offset").alias("stable_end"))
    )
    read = committed.where("NOT control").select(*PLACE, F.col("records").alias("given"))
    compared = (
        outcomes.join(read, list(PLACE), "left")
        .join(stable_end, ["topic", "partition"], "left")
        .withColumn("given", F.coalesce("given", F.lit(0)))
    )
    aborted = tell(
        compared.where(F.col("outcome").isin(ABORTED, OPEN) & (F.col("given") > 0)),
        Kind.ABORTED_READ,
        F.format_string("of a transaction that is %s", "outcome"),
        records="given",
    )
    may_be_read = F.coalesce(F.col("first_offset") < F.col("stable_end"), F.lit(True))
    missed = F.col("records") - F.col("given")
    unread = tell(
        compared.where(F.col("outcome").isin(COMMITTED, NONE) & may_be_read & (missed > 0)),
        Kind.UNREAD,
        F.format_string("%d of %d records were read", "given", "records"),
        records=missed,
    )
    return aborted.unionByName(unread)
