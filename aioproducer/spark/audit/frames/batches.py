"""One row for each batch: what is the same for all its records, and which of them are there."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.frames.pieces import PLACE

_SMALLEST: Final = ("first_offset", "first_ms", "first_counter")
_SUM: Final = "records"


def batches(slices: DataFrame) -> DataFrame:
    """The batches, with the columns of their slices."""
    names = [name for name in slices.columns if name not in (*PLACE, _SUM, "stream", "in_order")]
    return slices.groupBy(*PLACE).agg(
        F.sum(_SUM).alias(_SUM), *((F.min if name in _SMALLEST else F.max)(name).alias(name) for name in names)
    )
