"""The stamped records that rules look at one by one, in one scan of them all: those of spans and slices in doubt."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.frames.matching import found_among
from aioproducer.spark.audit.frames.pieces import SLICE, SPAN, span

_COLUMNS = (*SLICE, "offset", "counter", "producer_id", "producer_epoch", "sequence", "key")


def suspects(observations: DataFrame, spans: DataFrame, slices: DataFrame) -> DataFrame:
    """The records, with two more columns.

    ``in_doubt``: the span is one of ``spans`` (stream, span). ``reached``: that of the slice in ``slices``, which has
    the columns of ``SLICE`` besides; null if it is not there.
    """
    stamped = observations.where("stream IS NOT NULL AND counter IS NOT NULL").select(*_COLUMNS, span())
    in_spans = found_among(stamped, spans.select(*SPAN, F.lit(True).alias("in_doubt")), SPAN)
    found = found_among(in_spans, slices.select(*SLICE, "reached"), SLICE)
    return found.where("in_doubt OR reached IS NOT NULL").withColumn("in_doubt", F.coalesce("in_doubt", F.lit(False)))
