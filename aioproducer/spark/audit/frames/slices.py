"""One row for each batch and each stream with records in it: what rules need of records, at a hundredth of the rows.

A batch usually has records of one stream, so there are hardly more slices than batches.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.frames.pieces import SLICE

_SMALLEST = ("first_offset", "first_ms", "first_counter")
_SUM = "records"
_LEADS = ("least_lead", "most_lead")
_OF_SPANS = ("span", "numbers", "places")


def slices(pieces: DataFrame) -> DataFrame:
    """The slices, with the columns of their pieces.

    ``in_order``: the numbers of the stream rise one by one with the offsets. If not, they may still be in order.
    """
    names = [name for name in pieces.columns if name not in (*SLICE, _SUM, *_LEADS, *_OF_SPANS)]
    return pieces.groupBy(*SLICE).agg(
        F.sum(_SUM).alias(_SUM),
        *((F.min if name in _SMALLEST else F.max)(name).alias(name) for name in names),
        (F.min("least_lead") == F.max("most_lead")).alias("in_order"),
    )
