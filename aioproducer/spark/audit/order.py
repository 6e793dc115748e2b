"""The records of a stream are in a partition in the order in which they were sent."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames import rows_before
from aioproducer.spark.audit.ledger import RECORD
from aioproducer.spark.audit.tell import ONE_RECORD, tell


def wrong_order(observations: DataFrame, several: DataFrame) -> DataFrame:
    """Records after one with a higher number. Records with ``several`` copies (stream, counter) are left out, because
    one of their copies is always late."""
    before = rows_before(Window.partitionBy("topic", "partition", "stream").orderBy("offset"))
    columns = ("topic", "partition", "offset", *RECORD, "producer_id", "producer_epoch", "key")
    behind = (
        observations.where("stream IS NOT NULL AND counter IS NOT NULL")
        .select(*columns)
        .withColumn("seen", F.max("counter").over(before))
        .where("counter < seen")
    )
    return tell(
        behind.join(several, list(RECORD), "left_anti"),
        Kind.REORDERED,
        F.format_string("number %d comes after %d", "counter", "seen"),
        **ONE_RECORD,
    )
