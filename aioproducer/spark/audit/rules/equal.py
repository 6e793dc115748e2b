"""Records that have the same key and value, where no two should."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.counts import CONTENT, CONTENTS
from aioproducer.spark.audit.frames.matching import matching
from aioproducer.spark.audit.rules.findings import ONE_RECORD, findings_of

_CONTENT = ("topic", *CONTENT)


def equal_records(counts: DataFrame, records: DataFrame) -> DataFrame:
    """All equal records, including the first ones, by two 64-bit digests. Records read without values have none.

    Copies of one record, by stamp or by sequence, are reported as duplicates, and not here.
    """
    several = counts.where((F.col("counted") == CONTENTS) & (F.col("one") != F.col("other")))
    return findings_of(
        matching(records, several.select(*_CONTENT, F.col("records").alias("equal")), _CONTENT),
        Kind.EQUAL,
        F.format_string("one of %d", "equal"),
        **ONE_RECORD,
    )
