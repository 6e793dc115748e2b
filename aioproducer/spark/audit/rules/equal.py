"""Records that have the same key and value, where no two should."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.ledger import RECORD, write_digest
from aioproducer.spark.audit.frames.matching import matching
from aioproducer.spark.audit.rules.findings import ONE_RECORD, findings_of

_CONTENT = ["topic", "content", "content_too"]


def equal_records(observations: DataFrame) -> DataFrame:
    """All equal records, including the first ones, by two 64-bit digests. Records read without values have none.

    Copies of one record, by stamp or by sequence, are reported as duplicates, and not here.
    """
    compared = observations.where("content IS NOT NULL").withColumn(
        "record",
        F.when(F.col("counter").isNotNull(), F.xxhash64(*RECORD)).otherwise(write_digest()),
    )
    several = compared.groupBy(*_CONTENT).agg(
        F.count("*").alias("equal"), F.min("record").alias("one"), F.max("record").alias("other")
    )
    return findings_of(
        matching(compared, several.where("one <> other").select(*_CONTENT, "equal"), _CONTENT),
        Kind.EQUAL,
        F.format_string("one of %d", "equal"),
        **ONE_RECORD,
    )
