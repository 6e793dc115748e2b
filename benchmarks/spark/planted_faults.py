"""One fault of each kind that an audit can find, planted in topics that are in order."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.local_frame import local_frame
from benchmarks.spark.audited_topics import (
    BATCH,
    BEGIN_MS,
    PARTITIONS,
    STREAMS,
    Shape,
    Topics,
    all_of,
    as_source,
    clicks,
    committed_of,
    events,
    orders,
    payments,
)

_TORN_PART = "transaction <=> 3 AND partition = 1"

PLANTED: dict[Kind, int] = {
    Kind.MISSING: 3,
    Kind.MISPLACED: 2,
    Kind.RESURRECTED: 1,
    Kind.UNENDED: 1,
    Kind.GAP: BATCH,
    Kind.HOLE: 1,
    Kind.DUPLICATE: BATCH + 2,
    Kind.EQUAL: 2,
    Kind.REORDERED: 1,
    Kind.TORN: PARTITIONS * BATCH,
    Kind.OPEN: PARTITIONS * BATCH,
    Kind.ABORTED_READ: BATCH,
}
"""How many records are concerned. Those of late minutes and skewed partitions go by the size."""


def faulty_topics(spark: SparkSession, shape: Shape) -> Topics:
    """With one fault of each kind of ``PLANTED``."""
    ordered = _late(_swapped(_gap(orders(spark, shape))))
    next_number, end = shape.orders // STREAMS + 1, shape.orders // PARTITIONS
    equal = _appended(ordered, "partition = 3 AND offset = 7", shape).withColumn("counter", F.lit(next_number))
    logged = events(all_of(ordered, payments(spark, shape), equal))
    lost = [_logged_of_nothing(spark, "stream-0", next_number + more, end + more, "acked") for more in (1, 2, 3)]
    unended = _logged_of_nothing(spark, "stream-1", next_number, None)
    paid = _open(_torn(payments(spark, shape)), shape)
    flat = all_of(
        ordered,
        equal,
        _again(ordered, "partition = 1 AND batch_offset = 0", end),
        _appended(ordered, "partition = 2 AND offset = 9", shape),
        paid,
        _hole(clicks(spark, shape, skewed=True)),
    )
    given = F.col("transaction").isNull() | (F.col("transaction") != shape.transactions - 1)
    committed = committed_of(flat).where(given & ~F.expr(_TORN_PART))
    aborted = flat.where("transaction = 9 AND partition = 2 AND NOT control")
    return Topics(flat, all_of(_resurrected(_misplaced(logged)), *lost, unended), as_source(all_of(committed, aborted)))


def _logged_of_nothing(spark: SparkSession, stream: str, counter: int, offset: int | None, *ends: str) -> DataFrame:
    """The events of a record that is nowhere."""
    schema = (
        "schema int, event string, stream string, counter long, time_ms long, sent_ms long, topic string, "
        "partition int, offset long"
    )
    rows = [(1, event, stream, counter, BEGIN_MS, None, "orders", 5, offset) for event in ("sent", *ends)]
    return local_frame(spark, rows, schema).withColumn("outcome", F.lit(None).cast("string"))


def _gap(orders: DataFrame) -> DataFrame:
    """A batch is not there, and those behind it move up: the broker did not see that it is missing."""
    behind = (F.col("partition") == 0) & (F.col("batch_offset") > 8 * BATCH)
    kept = orders.where(f"partition <> 0 OR batch_offset <> {8 * BATCH}")
    return kept.withColumns(
        {name: F.when(behind, F.col(name) - BATCH).otherwise(F.col(name)) for name in ("offset", "batch_offset")}
    )


def _swapped(orders: DataFrame) -> DataFrame:
    """Two records in the wrong order, in one batch: nothing but their numbers shows it."""
    here = (F.col("partition") == 4) & F.col("offset").isin(10, 11)
    return orders.withColumn(
        "counter",
        F.when(here, F.col("counter") + F.when(F.col("offset") == 10, 1).otherwise(-1)).otherwise(F.col("counter")),
    )


def _late(orders: DataFrame) -> DataFrame:
    """One record of ten of the first minute takes a minute."""
    late = (F.col("offset") % 10 == 0) & (F.col("sent_ms") < BEGIN_MS + 60_000)
    return orders.withColumn("timestamp_ms", F.col("timestamp_ms") + F.when(late, 60_000).otherwise(0))


def _appended(orders: DataFrame, which: str, shape: Shape) -> DataFrame:
    """A record once more at the end of its partition, as the next of its producer."""
    end = F.lit(shape.orders // PARTITIONS).cast("long")
    place = {"offset": end, "batch_offset": end, "batch_records": F.lit(1)}
    return orders.where(which).withColumns({**place, "sequence": F.lit(shape.rounds * BATCH)})


def _again(orders: DataFrame, which: str, end: int) -> DataFrame:
    """A batch once more at the end of its partition, with the same sequences."""
    in_batch = F.col("offset") - F.col("batch_offset")
    return orders.where(which).withColumns({"offset": F.lit(end) + in_batch, "batch_offset": F.lit(end).cast("long")})


def _torn(payments: DataFrame) -> DataFrame:
    """One transaction is aborted in one partition, and committed in the others."""
    marker = F.expr(f"{_TORN_PART} AND control")
    return payments.withColumn("key", F.when(marker, F.unhex(F.lit("00000000"))).otherwise(F.col("key")))


def _open(payments: DataFrame, shape: Shape) -> DataFrame:
    """The last transaction has no markers."""
    return payments.where(f"transaction <> {shape.transactions - 1} OR NOT control")


def _hole(clicks: DataFrame) -> DataFrame:
    return clicks.where("partition <> 1 OR offset <> 50")


def _misplaced(events: DataFrame) -> DataFrame:
    """Two records were acknowledged each with the other's offset."""
    swapped = F.when(F.col("offset") == 20, 21).when(F.col("offset") == 21, 20)
    here = F.expr("topic = 'orders' AND partition = 5 AND offset IN (20, 21)")
    return events.withColumn("offset", F.when(here, swapped.cast("long")).otherwise(F.col("offset")))


def _resurrected(events: DataFrame) -> DataFrame:
    """One is logged as failed, and not in the topic."""
    here = F.expr("topic = 'orders' AND partition = 5 AND offset = 30")
    return events.withColumns(
        {
            "event": F.when(here, "failed").otherwise(F.col("event")),
            "outcome": F.when(here, "not_sent").otherwise(F.col("outcome")),
        }
    )
