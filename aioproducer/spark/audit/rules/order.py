"""The records of a stream are in a partition in the order in which they were sent."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.ledger import RECORD
from aioproducer.spark.audit.frames.pieces import SLICE
from aioproducer.spark.audit.frames.rows_before import rows_before
from aioproducer.spark.audit.rules.findings import ONE_RECORD, findings_of

_LOWEST: Final = -(1 << 63)
"""Before the first number of a stream."""


def disordered(slices: DataFrame) -> DataFrame:
    """The slices in which records may stand behind one with a higher number, and the highest number before them
    (``reached``): those with a lower number, or whose own are not known to rise."""
    before = rows_before(Window.partitionBy("topic", "partition", "stream").orderBy("first_offset"))
    return (
        slices.where("stream IS NOT NULL AND last_counter IS NOT NULL")
        .withColumn("reached", F.coalesce(F.max("last_counter").over(before), F.lit(_LOWEST)))
        .where("NOT in_order OR first_counter < reached")
        .select(*SLICE, "reached")
    )


def wrong_order(suspects: DataFrame, several: DataFrame) -> DataFrame:
    """Records after one with a higher number. Records with ``several`` copies (stream, counter) are left out, because
    one of their copies is always late. Each slice is looked at by itself.
    """
    within = rows_before(Window.partitionBy(*SLICE).orderBy("offset"))
    behind = (
        suspects.where("reached IS NOT NULL")
        .withColumn("seen", F.greatest("reached", F.max("counter").over(within)))
        .where("counter < seen")
    )
    return findings_of(
        behind.join(several.hint("merge"), list(RECORD), "left_anti"),
        Kind.REORDERED,
        F.format_string("number %d comes after %d", "counter", "seen"),
        **ONE_RECORD,
    )
