"""One narrow row for each record of the topics: what the rules look at, and nothing else.

| column | type | |
|---|---|---|
| topic, partition, offset | string, int, long | where it is |
| timestamp_ms, appended | long, boolean | its timestamp; whether the broker set it (LogAppendTime) |
| producer_id, producer_epoch, sequence | long, int, int | null without a producer id; sequence: the record's own |
| transactional, control, committed | boolean | committed: what a control record says; null for others |
| batch_offset, batch_records, batch_bytes | long, int, int | its batch, as it is in the log |
| key | binary | |
| content, content_too | long | two digests of key and value; null where values are not read |
| stream, counter, sent_ms | string, long, long | the stamps of a DeliveryLog; null without |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from aioproducer.delivery_log import COUNTER_HEADER, SENT_HEADER, STREAM_HEADER
from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.source.source_schema import COLUMNS

_STAMPS: Final = (STREAM_HEADER, COUNTER_HEADER, SENT_HEADER)
"""In the order in which a DeliveryLog adds them."""

_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "headers", "batch")


def source_schema(*, values: bool) -> StructType:
    """The columns to read from the source; values are large, and only needed to compare contents."""
    return schema_of((*_COLUMNS, "value") if values else _COLUMNS)


def schema_of(names: Sequence[str]) -> StructType:
    """Some columns of the source."""
    return StructType([StructField(name, COLUMNS[name]) for name in names])


def observe(source: DataFrame) -> DataFrame:
    """The rows of the source, which has the columns of ``source_schema``, with or without ``value``."""
    missing = [name for name in _COLUMNS if name not in source.columns]
    if missing:
        raise IllegalArgumentException(
            f"the audit's source has no column {', '.join(missing)}: read it with includeHeaders and includeBatch"
        )
    batch = F.col("batch")
    control = batch["control"]
    digests = [(F.lit(salt), F.col("key").isNull(), F.col("key"), F.col("value")) for salt in (1, 2)]
    content = [F.xxhash64(*digest) for digest in digests] if "value" in source.columns else [F.lit(None)] * 2
    return source.select(
        "topic",
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("timestamp_ms"),
        (F.col("timestampType") == 1).alias("appended"),
        batch["producerId"].alias("producer_id"),
        batch["producerEpoch"].alias("producer_epoch"),
        F.when(~control, batch["sequence"]).alias("sequence"),
        batch["transactional"].alias("transactional"),
        control.alias("control"),
        # A marker's key is its version and its type, two bytes each; type 1 is a commit.
        F.when(control, F.hex(F.substring("key", 3, 2)) == "0001").alias("committed"),
        batch["baseOffset"].alias("batch_offset"),
        batch["recordCount"].alias("batch_records"),
        batch["sizeInBytes"].alias("batch_bytes"),
        F.when(~control, F.col("key")).alias("key"),
        *(
            F.when(~control, digest).cast("long").alias(f"content{more}")
            for digest, more in zip(content, ("", "_too"), strict=True)
        ),
        _stamp(STREAM_HEADER).cast("string").alias("stream"),
        _stamp(COUNTER_HEADER).cast("string").try_cast("long").alias("counter"),
        _stamp(SENT_HEADER).cast("string").try_cast("long").alias("sent_ms"),
    )


def _stamp(name: str) -> Column:
    """The value of the last header of this name; null if there is none.

    A DeliveryLog that is the last interceptor leaves its stamps at the end. Only stamps elsewhere are searched for,
    because that takes Spark much longer.
    """
    at_end = F.lit(True)
    for place, stamp in enumerate(_STAMPS):
        at_end = at_end & (_from_end(place)["key"] == stamp)
    named = F.filter("headers", lambda header: header["key"] == name)
    searched = F.try_element_at(named, F.lit(-1))
    return F.when(at_end, _from_end(_STAMPS.index(name))["value"]).otherwise(searched["value"])


def _from_end(place: int) -> Column:
    return F.try_element_at("headers", F.lit(place - len(_STAMPS)))
