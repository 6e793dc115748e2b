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
    count = wanted.limit(MOST_SENT + 1).count()
    if count == 0:
        return rows.limit(0).join(wanted.limit(0), list(key))
    return rows.join(F.broadcast(wanted) if count <= MOST_SENT else wanted.hint("merge"), list(key))
