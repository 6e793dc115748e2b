"""Transactions in the log: which batches were committed, and which transactions did not end in the same way everywhere.

A marker in a partition ends everything that its producer wrote there before. If the marker has a higher epoch than what
it ends, the epoch identifies the transaction in all partitions (so with transaction.version 2, and if a transaction was
fenced or timed out). Otherwise its parts are recognised by the counters of their stamps, which overlap, because a
producer has one transaction at a time. Without stamps nothing distinguishes them from parts of other transactions.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.rows_before import rows_before
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.rules.findings import findings_of

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
OPEN: Final = "open"
NONE: Final = "none"

_PRODUCER = ("topic", "partition", "producer_id")


def outcomes(batches: DataFrame) -> DataFrame:
    """The batches of records, each with its ``outcome``: committed, aborted, open, or none for what is not
    transactional; and with offset and epoch of the marker that ended it."""
    # From the end backwards: a frame that reaches to the end would be walked through for every row.
    from_end = (
        Window.partitionBy(*_PRODUCER)
        .orderBy(F.desc("first_offset"))
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )

    def of_next_marker(column: str) -> Column:
        return F.last(F.when(F.col("control"), F.col(column)), ignorenulls=True).over(from_end)

    ended = (
        batches.where("transactional")
        .withColumn("committed", of_next_marker("committed"))
        .withColumn("marker_epoch", of_next_marker("producer_epoch"))
        .withColumn("marker_offset", of_next_marker("first_offset"))
        .where("NOT control")
    )
    outcome = F.when(F.col("committed"), COMMITTED).when(~F.col("committed"), ABORTED).otherwise(OPEN)
    plain = batches.where("NOT transactional").withColumn("outcome", F.lit(NONE))
    return ended.withColumn("outcome", outcome).unionByName(plain, allowMissingColumns=True)


def parts(outcomes: DataFrame) -> DataFrame:
    """One row for each partition that a transaction wrote to."""
    return (
        outcomes.where(F.col("outcome") != NONE)
        .groupBy(*_PRODUCER, "marker_offset", "outcome")
        .agg(
            F.min("first_offset").alias("first_offset"),
            F.max("last_offset").alias("last_offset"),
            F.max("producer_epoch").alias("producer_epoch"),
            F.max("marker_epoch").alias("marker_epoch"),
            F.sum("records").alias("records"),
            F.max("last_ms").alias("last_ms"),
            F.min("first_counter").alias("first_counter"),
            F.max("last_counter").alias("last_counter"),
        )
    )


def matchable() -> Column:
    """Whether it is known which parts in other partitions belong to a part."""
    return (
        F.coalesce(F.col("marker_epoch") > F.col("producer_epoch"), F.lit(False)) | F.col("first_counter").isNotNull()
    )


def wrong_transactions(parts: DataFrame, options: AuditOptions) -> DataFrame:
    """Torn transactions, and those open for too long. Younger ones may be about to end."""
    may_be_open = options.now_ms - options.transaction_ms
    settled = parts.where((F.col("outcome") != OPEN) | (F.col("last_ms") < may_be_open))
    left_open = findings_of(
        settled.where(F.col("outcome") == OPEN),
        Kind.OPEN,
        F.format_string("no marker since %s UTC", F.timestamp_millis("last_ms").cast("string")),
        records="records",
    )
    return _torn(settled).unionByName(left_open)


def _torn(parts: DataFrame) -> DataFrame:
    transaction = ["producer_id", "producer_epoch", "transaction"]
    numbered = _numbered(parts)
    counts = [F.count_if(F.col("outcome") == outcome).alias(outcome) for outcome in (COMMITTED, ABORTED, OPEN)]
    torn = numbered.groupBy(*transaction).agg(*counts, F.count_distinct("outcome").alias("ways")).where("ways > 1")
    words = "this part is %s; of all its parts %d are committed, %d aborted, %d open"
    return findings_of(
        numbered.join(torn, transaction),
        Kind.TORN,
        F.format_string(words, "outcome", COMMITTED, ABORTED, OPEN),
        records="records",
    )


def _numbered(parts: DataFrame) -> DataFrame:
    """With the number of the ``transaction`` among those of its producer and epoch."""
    whole_epoch = Window.partitionBy("producer_id", "producer_epoch")
    by_counter = whole_epoch.orderBy("first_counter", "topic", "partition", "first_offset")
    before = rows_before(by_counter)
    overlaps = F.coalesce(F.col("first_counter") <= F.max("last_counter").over(before), F.lit(False))
    only_one = F.coalesce(F.min(F.col("marker_epoch") > F.col("producer_epoch")).over(whole_epoch), F.lit(False))
    return parts.withColumn("begins", F.when(overlaps | only_one, 0).otherwise(1)).withColumn(
        "transaction", F.sum("begins").over(by_counter)
    )
