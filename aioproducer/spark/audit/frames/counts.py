"""Records counted by key, by the time that they took, and by content, in one scan of them all.

| column | type | |
|---|---|---|
| counted | string | ``KEYS``, ``TIMES`` or ``CONTENTS``: by what; the columns of the others are null |
| topic, records | string, long | |
| key | binary | ``KEYS`` |
| minute_ms, took | long | ``TIMES``: the minute of sending, and milliseconds until the broker appended the record |
| content, content_too | long | ``CONTENTS``: digests of key and value |
| low, high | int | the lowest and highest partition |
| one, other | long | of ``CONTENTS``: digests of the records; equal for copies of one record |
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.frames.ledger import RECORD, write_digest

KEYS: Final = "keys"
TIMES: Final = "times"
CONTENTS: Final = "contents"

CONTENT: Final = ("content", "content_too")
TIME: Final = ("minute_ms", "took")

_GROUPS: Final = {KEYS: ("key",), TIMES: TIME, CONTENTS: CONTENT}
_MINUTE: Final = 60_000


def counts(records: DataFrame, *, contents: bool = False) -> DataFrame:
    """The counts of ``records``, which are observations; ``contents`` only if they are to be compared.

    Without a key, with their producer's own timestamp, or without a stamp, records are in none of the groups.
    """
    groups = {name: columns for name, columns in _GROUPS.items() if contents or name != CONTENTS}
    names = [name for columns in groups.values() for name in columns]
    in_time = records.select(
        *("topic", "partition", "key"),
        *(F.when(F.col("appended"), column).alias(name) for name, column in _time("timestamp_ms").items()),
        *(CONTENT if contents else ()),
        (record_digest() if contents else F.lit(None).cast("long")).alias("record"),
    )
    counted = in_time.groupingSets([("topic", *columns) for columns in groups.values()], "topic", *names).agg(
        F.count("*").alias("records"),
        F.min("partition").alias("low"),
        F.max("partition").alias("high"),
        F.min("record").alias("one"),
        F.max("record").alias("other"),
        *(F.grouping(columns[-1]).alias(f"not_{name}") for name, columns in groups.items()),
    )
    of_group = [
        F.when((F.col(f"not_{name}") == 0) & F.col(columns[-1]).isNotNull(), name) for name, columns in groups.items()
    ]
    found = counted.withColumn("counted", F.coalesce(*of_group)).where("counted IS NOT NULL")
    return found.drop(*(f"not_{name}" for name in groups))


def _time(until: str) -> dict[str, Column]:
    """The columns of ``TIME``, from ``sent_ms`` to ``until``. From one second on, milliseconds are rounded to tens."""
    took = F.col(until) - F.col("sent_ms")
    coarse = (F.ceil(took / 10) * 10).cast("long")
    return {
        "minute_ms": F.col("sent_ms") - F.pmod("sent_ms", F.lit(_MINUTE)),
        "took": F.when(took < 1000, F.greatest(took, F.lit(0))).otherwise(coarse),
    }


def acknowledged_times(events: DataFrame, bounds: DataFrame) -> DataFrame:
    """The columns of ``TIME``, and records: until they were acknowledged, by their log, in the topics of ``bounds``."""
    audited = F.broadcast(bounds.select("topic").distinct())
    acknowledged = events.where("event = 'acked' AND sent_ms IS NOT NULL").join(audited, "topic", "left_semi")
    times = acknowledged.select(*(column.alias(name) for name, column in _time("time_ms").items()))
    return times.groupBy(*TIME).agg(F.count("*").alias("records"))


def record_digest() -> Column:
    """Equal for copies of one record, by stamp or by sequence."""
    return F.when(F.col("counter").isNotNull(), F.xxhash64(*RECORD)).otherwise(write_digest())
