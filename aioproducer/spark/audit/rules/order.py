"""The records of a stream are in a partition in the order in which they were sent."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.ledger import RECORD
from aioproducer.spark.audit.frames.matching import matching
from aioproducer.spark.audit.frames.rows_before import rows_before
from aioproducer.spark.audit.frames.slices import SLICE
from aioproducer.spark.audit.rules.findings import ONE_RECORD, findings_of


def wrong_order(slices: DataFrame, observations: DataFrame, several: DataFrame) -> DataFrame:
    """Records after one with a higher number. Records with ``several`` copies (stream, counter) are left out, because
    one of their copies is always late.

    The highest number before each slice comes from the slices alone. Records are looked at only where a slice has a
    lower number, or its own are not known to rise; each slice by itself.
    """
    before = rows_before(Window.partitionBy("topic", "partition", "stream").orderBy("first_offset"))
    doubtful = (
        slices.where("stream IS NOT NULL AND last_counter IS NOT NULL")
        .withColumn("reached", F.max("last_counter").over(before))
        .where("NOT in_order OR first_counter < reached")
        .select(*SLICE, "reached")
    )
    columns = (*SLICE, "offset", "counter", "producer_id", "producer_epoch", "key")
    records = observations.where("stream IS NOT NULL AND counter IS NOT NULL").select(*columns)
    within = rows_before(Window.partitionBy(*SLICE).orderBy("offset"))
    behind = (
        matching(records, doubtful, SLICE)
        .withColumn("seen", F.greatest("reached", F.max("counter").over(within)))
        .where("counter < seen")
    )
    return findings_of(
        behind.join(several.hint("merge"), list(RECORD), "left_anti"),
        Kind.REORDERED,
        F.format_string("number %d comes after %d", "counter", "seen"),
        **ONE_RECORD,
    )
