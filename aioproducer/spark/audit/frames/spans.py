"""Spans of the numbers of a stream, at a thousandth of the rows: whether the records there are those in the logs.

Sums of digests compare sets of records without bringing single records together. Where the sums of a span agree,
each record of it is there once, at the offset that was acknowledged, and each that its log has as sent has one end.
Only in the other spans the ledger looks at single records.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.frames.events import logged_records
from aioproducer.spark.audit.frames.pieces import RECORD_AT, SPAN, digest, span, sum_of


def compared(pieces: DataFrame, events: DataFrame | None, bounds: DataFrame, now_ms: int) -> DataFrame:
    """One row for each stream and span.

    | column | |
    |---|---|
    | copies, first, last | how many stamped records there are, and their lowest and highest number |
    | acknowledged | how many records were acknowledged |
    | logged | whether its log has something about the span |
    | in_order | whether each record is there once, as it was logged; if not, the ledger says more |
    """
    there = (
        pieces.where("stream IS NOT NULL AND span IS NOT NULL")
        .groupBy(*SPAN)
        .agg(
            F.sum("records").alias("copies"),
            F.min("first_counter").alias("first"),
            F.max("last_counter").alias("last"),
            F.try_sum("numbers").alias("numbers"),
            F.try_sum("places").alias("places"),
        )
    )
    if events is None:
        in_order = _all_of("copies", "first", "last", "numbers")
        found = there.withColumns({"acknowledged": F.lit(0).cast("long"), "logged": F.lit(False), "in_order": in_order})
    else:
        joined = there.join(_of_log(events, bounds, now_ms), list(SPAN), "full")
        found = joined.fillna(0, ["copies", "numbers", "places", *_COUNTS]).withColumns(
            {"logged": F.col("begun") + F.col("ended") > 0, "in_order": _as_logged()}
        )
    return found.select(
        *SPAN,
        "copies",
        "first",
        "last",
        "acknowledged",
        "logged",
        F.coalesce("in_order", F.lit(False)).alias("in_order"),
    )


_COUNTS: Final = (
    *("begun", "begun_numbers", "sent", "sent_numbers", "ended", "ended_numbers"),
    *("acknowledged", "expected", "expected_places"),
)


def _of_log(events: DataFrame, bounds: DataFrame, now_ms: int) -> DataFrame:
    """Counts and sums of events: ``begun`` in all topics, the others in those of ``bounds``."""
    sent = F.col("event") == "sent"
    audited = F.col("audited")
    ended = audited & F.expr("event = 'acked' OR outcome IN ('not_sent', 'unknown')")
    return (
        logged_records(events, bounds, now_ms)
        .groupBy("stream", span())
        .agg(
            F.count_if(sent).alias("begun"),
            F.min(F.when(sent, F.col("counter"))).alias("begun_first"),
            F.max(F.when(sent, F.col("counter"))).alias("begun_last"),
            sum_of("counter", where=sent).alias("begun_numbers"),
            F.count_if(sent & audited).alias("sent"),
            sum_of("counter", where=sent & audited).alias("sent_numbers"),
            F.count_if(ended).alias("ended"),
            sum_of("counter", where=ended).alias("ended_numbers"),
            F.count_if(audited & (F.col("event") == "acked")).alias("acknowledged"),
            F.count_if("due").alias("expected"),
            sum_of(*RECORD_AT, where=F.col("due")).alias("expected_places"),
        )
    )


def _as_logged() -> Column:
    """Each number was sent once and ended once, and what is there is what was acknowledged and is due; or the log has
    nothing about the span, and all numbers are there once."""
    once = _all_of("begun", "begun_first", "begun_last", "begun_numbers")
    ended = F.expr("sent = ended AND sent_numbers = ended_numbers")
    there = F.expr("copies = expected AND places = expected_places")
    alone = _all_of("copies", "first", "last", "numbers")
    return F.when(F.col("begun") + F.col("ended") > 0, once & ended & there).otherwise(alone)


def _all_of(count: str, first: str, last: str, numbers: str) -> Column:
    """Whether these are all numbers from the first to the last, once each."""
    expected = F.aggregate(F.sequence(first, last), F.lit(0).cast("long"), lambda total, number: total + digest(number))
    return (F.col(count) == F.col(last) - F.col(first) + 1) & (F.col(numbers) == expected)


def spans(compared: DataFrame, ledger: DataFrame) -> DataFrame:
    """One row for each stream and span: how many ``numbers`` of records are there, from ``first`` to ``last``, and how
    many copies of them; how many of these are ``logged``, so that their log has something about them; and how many
    records were ``acknowledged``. ``ledger`` has the rows of the spans that are not in order."""
    in_order = compared.where("in_order").select(
        *SPAN,
        F.col("copies").alias("numbers"),
        "first",
        "last",
        "copies",
        F.when(F.col("logged"), F.col("copies")).otherwise(0).alias("logged"),
        "acknowledged",
    )
    there = F.col("copies") > 0
    logged = F.expr("sent OR acked OR not_sent OR unknown")
    by_record = ledger.groupBy("stream", span()).agg(
        F.count_if(there).alias("numbers"),
        F.min(F.when(there, F.col("counter"))).alias("first"),
        F.max(F.when(there, F.col("counter"))).alias("last"),
        F.sum("copies").alias("copies"),
        F.sum(F.when(logged, F.col("copies")).otherwise(0)).alias("logged"),
        F.count_if("acked").alias("acknowledged"),
    )
    return in_order.unionByName(by_record)
