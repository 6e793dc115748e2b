"""The ledger of single stamped records: one row for each number of a stream, with what was logged and what is there.

| column | type | |
|---|---|---|
| stream, counter | string, long | the record |
| copies | long | how often it is in the topics |
| first_place, last_place | long | digests of the place; equal unless there are several copies |
| first_write, last_write | long | digests of producer id, epoch and sequence; equal copies were sequenced as one |
| sent, acked, not_sent, unknown | boolean | whether its log has an event of this kind |
| due | boolean | it was acknowledged, and must still be there |
| acked_place | long | the digest of the place that was acknowledged; null if unknown |
| sent_ms | long | when, by the log |

It has the records of those spans in which something is not as it should be (``spans.py``). Everything that is kept for
a record has a fixed size: names are looked up again only for findings.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.frames.events import logged_records
from aioproducer.spark.audit.frames.matching import matching
from aioproducer.spark.audit.frames.pieces import SPAN, span

RECORD: Final = ("stream", "counter")
_EVENTS: Final = ("sent", "acked", "not_sent", "unknown")
_FLAGS: Final = {name: 1 << bit for bit, name in enumerate((*_EVENTS, "due"))}
_LOGGED: Final = {"flags": "int", "acked_place": "long", "sent_ms": "long"}


def ledger(
    suspects: DataFrame, events: DataFrame | None, bounds: DataFrame, wanted: DataFrame, now_ms: int
) -> DataFrame:
    """The rows of the ``wanted`` spans: records in doubt, and those that ``events`` has for topics in ``bounds``."""
    rows = suspects.where("in_doubt").select(
        *RECORD,
        "span",
        place_digest().alias("place"),
        write_digest().alias("write"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in _LOGGED.items()),
    )
    if events is not None:
        logged = _logged(logged_records(events, bounds, now_ms)).withColumn("span", span())
        rows = rows.unionByName(matching(logged, wanted, SPAN), allowMissingColumns=True)
    by_record = rows.groupBy(*SPAN, "counter")
    found = by_record.agg(
        F.count("place").alias("copies"),
        F.min("place").alias("first_place"),
        F.max("place").alias("last_place"),
        F.min("write").alias("first_write"),
        F.max("write").alias("last_write"),
        F.coalesce(F.bit_or("flags"), F.lit(0)).alias("flags"),
        F.max("acked_place").alias("acked_place"),
        F.min("sent_ms").alias("sent_ms"),
    )
    flags = {name: F.col("flags").bitwiseAND(bit) != 0 for name, bit in _FLAGS.items()}
    return found.withColumns(flags).drop("span", "flags")


def place_digest() -> Column:
    """Topic, partition and offset in one number."""
    return F.xxhash64("topic", "partition", "offset")


def write_digest() -> Column:
    """What copies that were sequenced as one have in common; without a sequence, a record is one of its own."""
    sequenced = F.xxhash64("topic", "partition", "producer_id", "producer_epoch", "sequence")
    return F.when(F.col("sequence").isNull(), place_digest()).otherwise(sequenced)


def _logged(records: DataFrame) -> DataFrame:
    """The rows of what the logs say."""
    acked = F.col("event") == "acked"
    event = F.when(F.col("event") == "failed", F.col("outcome")).otherwise(F.col("event"))
    flag = F.coalesce(*(F.when(event == name, F.lit(_FLAGS[name])) for name in _EVENTS), F.lit(0))
    return records.where("audited").select(
        *RECORD,
        (flag + F.when(F.col("due"), _FLAGS["due"]).otherwise(0)).alias("flags"),
        F.when(acked & (F.col("offset") >= 0), place_digest()).alias("acked_place"),
        F.when(F.col("event") == "sent", F.col("time_ms")).alias("sent_ms"),
    )


def doubtful(ledger: DataFrame) -> DataFrame:
    """The rows in which something is to be found; of records in order there are none."""
    return ledger.where(
        (F.col("copies") > 1)
        | (F.col("not_sent") & (F.col("copies") > 0))
        | (F.col("due") & (F.col("copies") == 0))
        | elsewhere()
        | without_end()
    )


def elsewhere() -> Column:
    """Another place was acknowledged than that of any copy."""
    place = F.col("acked_place")
    return place.isNotNull() & F.col("copies").isin(1, 2) & ~place.isin(F.col("first_place"), F.col("last_place"))


def without_end() -> Column:
    """The log has the beginning of the record, and no end."""
    return F.expr("sent AND NOT (acked OR not_sent OR unknown)")


def with_several_copies(ledger: DataFrame) -> DataFrame:
    """stream and counter of the records that are there more than once."""
    return ledger.where("copies > 1").select(*RECORD)
