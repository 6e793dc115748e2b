"""Rows looked up by their keys, without a table of records in the driver's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

MOST_SENT: Final = 100_000
"""Keys that Spark sends to all tasks, at most: some 20 MB. For more of them both tables are shuffled."""


def matching(rows: DataFrame, wanted: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows whose key is in ``wanted``, with the columns of both.

    Counts ``wanted`` first, so that nothing is read of ``rows`` if there is none: Spark would decide by an estimate in
    bytes, and may send millions of rows through its driver.
    """
    count = _count(wanted)
    if count == 0:
        return rows.limit(0).join(wanted.limit(0), list(key))
    return rows.join(_as_counted(wanted, count), list(key))


def found_among(rows: DataFrame, wanted: DataFrame, key: Sequence[str]) -> DataFrame:
    """All rows, with the columns of ``wanted``, which are null where it does not have the key."""
    count = _count(wanted)
    if count == 0:
        others = [field for field in wanted.schema if field.name not in key]
        return rows.withColumns({field.name: F.lit(None).cast(field.dataType) for field in others})
    return rows.join(_as_counted(wanted, count), list(key), "left")


def _count(wanted: DataFrame) -> int:
    count: int = wanted.limit(MOST_SENT + 1).count()
    return count


def _as_counted(wanted: DataFrame, count: int) -> DataFrame:
    return F.broadcast(wanted) if count <= MOST_SENT else wanted.hint("merge")
