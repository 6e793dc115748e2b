"""The ledger by spans of numbers: which of them are there, at a thousandth of the rows."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

SPAN: Final = ("stream", "span")

_NUMBERS: Final = 4096


def span() -> Column:
    """The span of a number."""
    return F.floor(F.col("counter") / _NUMBERS).cast("long").alias("span")


def spans(ledger: DataFrame) -> DataFrame:
    """One row for each stream and span: how many ``numbers`` of records are there, from ``first`` to ``last``, and how
    many copies of them; how many of these are ``logged``, so that their log has something about them; and how many
    records were ``acknowledged``."""
    there = F.col("copies") > 0
    logged = F.expr("sent OR acked OR not_sent OR unknown")
    return ledger.groupBy("stream", span()).agg(
        F.count_if(there).alias("numbers"),
        F.min(F.when(there, F.col("counter"))).alias("first"),
        F.max(F.when(there, F.col("counter"))).alias("last"),
        F.sum("copies").alias("copies"),
        F.sum(F.when(logged, F.col("copies")).otherwise(0)).alias("logged"),
        F.count_if("acked").alias("acknowledged"),
    )
