"""Topics to audit, made by Spark itself, of any size: in perfect order, or with one fault of each kind.

``orders`` is written by four idempotent producers with delivery logs, ``payments`` by a transactional one, ``clicks``
by one that is neither idempotent nor stamped. Partition, offset, sequence and number of each record are worked out from
its place alone, so 20 million are made as simply as 20 thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

BEGIN_MS = 1_700_000_040_000
"""When the first record was sent: the beginning of a minute."""
BATCH = 100
"""Records of a batch."""
PARTITIONS = 6
STREAMS = 4
KEYS = 1000
CLICK_PARTITIONS = 10
_ROUND = BATCH * PARTITIONS * STREAMS


@dataclass(frozen=True)
class Shape:
    """``rounds``: how many batches each producer of ``orders`` writes to each partition; the rest goes by that."""

    rounds: int

    @property
    def orders(self) -> int:
        return self.rounds * _ROUND

    @property
    def transactions(self) -> int:
        """The last of them is not one of those that are aborted."""
        return max(1, self.rounds // 20) * 10 + 1

    @property
    def clicks(self) -> int:
        return self.rounds * 20 * BATCH

    @property
    def records(self) -> int:
        return self.orders + self.transactions * PARTITIONS * BATCH + self.clicks

    @property
    def now_ms(self) -> int:
        """An hour after the last one was sent."""
        return BEGIN_MS + self.orders // 10 + 3_600_000

    @classmethod
    def of(cls, records: int) -> Shape:
        """About so many records."""
        return cls(max(10, round(records / (_ROUND + PARTITIONS * BATCH // 2 + 20 * BATCH))))


@dataclass(frozen=True)
class Topics:
    """What an audit is given; ``flat`` has all records, with the columns of ``_COLUMNS``."""

    flat: DataFrame
    events: DataFrame
    committed: DataFrame

    @property
    def source(self) -> DataFrame:
        return as_source(self.flat)

    def bounds(self) -> DataFrame:
        place = ["topic", "partition"]
        ends = self.flat.groupBy(*place).agg((F.max("offset") + 1).alias("end"))
        transactions = self.flat.where("transaction IS NOT NULL").groupBy(*place, "transaction")
        begun = transactions.agg(F.min("offset").alias("begin"), F.max("control").alias("ended"))
        open_from = begun.where("NOT ended").groupBy(*place).agg(F.min("begin").alias("open_from"))
        first, stable_end = F.lit(0).cast("long"), F.coalesce("open_from", "end")
        found = ends.join(open_from, place, "left")
        return found.select(*place, first.alias("first"), "end", stable_end.alias("stable_end"))


def topics(spark: SparkSession, shape: Shape) -> Topics:
    """All in order."""
    flat = all_of(orders(spark, shape), payments(spark, shape), clicks(spark, shape, skewed=False))
    return Topics(flat, events(flat), as_source(committed_of(flat)))


def orders(spark: SparkSession, shape: Shape) -> DataFrame:
    number, in_batch = F.col("id"), F.col("id") % BATCH
    batch = _div(number, BATCH)
    in_partition = _div(batch, PARTITIONS)
    producer, turn = in_partition % STREAMS, _div(in_partition, STREAMS)
    partition = (batch % PARTITIONS).cast("int")
    sent = F.lit(BEGIN_MS) + _div(number, 10)
    return _flat(
        spark.range(shape.orders),
        topic=F.lit("orders"),
        partition=partition,
        offset=in_partition * BATCH + in_batch,
        batch_offset=in_partition * BATCH,
        producer_id=F.lit(1000) + producer,
        epoch=F.lit(0),
        sequence=turn * BATCH + in_batch,
        stream=F.concat(F.lit("stream-"), producer.cast("string")),
        counter=(turn * PARTITIONS + partition) * BATCH + in_batch + 1,
        sent_ms=sent,
        timestamp_ms=sent + 5 + F.pmod(F.hash(number), F.lit(20)),
        key=F.concat_ws("-", F.lit("key"), partition, number % KEYS),
        value=F.rpad(F.concat(F.lit("order "), number.cast("string")), 100, "."),
    )


def payments(spark: SparkSession, shape: Shape) -> DataFrame:
    with_marker = BATCH + 1
    number = F.col("id")
    transaction, rest = _div(number, PARTITIONS * with_marker), number % (PARTITIONS * with_marker)
    partition, in_batch = _div(rest, with_marker).cast("int"), rest % with_marker
    control = in_batch == BATCH
    sent = F.lit(BEGIN_MS) + transaction * 10
    # A transaction each epoch, as with transaction.version 2: the marker has the next one. Few producer ids suffice.
    epoch = transaction % 30_000
    return _flat(
        spark.range(shape.transactions * PARTITIONS * with_marker),
        topic=F.lit("payments"),
        partition=partition,
        offset=transaction * with_marker + in_batch,
        batch_offset=transaction * with_marker + F.when(control, BATCH).otherwise(0),
        batch_records=F.when(control, 1).otherwise(BATCH),
        producer_id=F.lit(2000) + _div(transaction, 30_000),
        epoch=epoch + control.cast("int"),
        sequence=F.when(~control, in_batch),
        transactional=F.lit(True),
        control=control,
        transaction=transaction,
        stream=F.when(~control, "payments"),
        counter=F.when(~control, (transaction * PARTITIONS + partition) * BATCH + in_batch + 1),
        sent_ms=sent,
        timestamp_ms=sent + 5,
        key=F.when(control, F.unhex(F.when(transaction % 10 == 9, "00000000").otherwise("00000001"))).otherwise(
            F.concat(F.lit("account-"), partition.cast("string")).cast("binary")
        ),
        value=F.concat(F.lit("payment "), number.cast("string")),
    )


def clicks(spark: SparkSession, shape: Shape, *, skewed: bool) -> DataFrame:
    number = F.col("id")
    batch, in_batch = _div(number, BATCH), number % BATCH
    others = CLICK_PARTITIONS - 1
    if skewed:  # every other batch goes to partition 0, which then has five times the average
        turn = _div(batch, 2)
        partition = F.when(batch % 2 == 0, 0).otherwise(turn % others + 1)
        in_partition = F.when(batch % 2 == 0, turn).otherwise(_div(turn, others))
    else:
        partition, in_partition = batch % CLICK_PARTITIONS, _div(batch, CLICK_PARTITIONS)
    return _flat(
        spark.range(shape.clicks),
        topic=F.lit("clicks"),
        partition=partition.cast("int"),
        offset=in_partition * BATCH + in_batch,
        batch_offset=in_partition * BATCH,
        timestamp_ms=F.lit(BEGIN_MS) + _div(number, 10),
        value=F.concat(F.lit("click "), number.cast("string")),
    )


_COLUMNS = {
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "batch_offset": "long",
    "batch_records": "int",
    "producer_id": "long",
    "epoch": "int",
    "sequence": "int",
    "transactional": "boolean",
    "control": "boolean",
    "transaction": "long",
    "stream": "string",
    "counter": "long",
    "sent_ms": "long",
    "timestamp_ms": "long",
    "key": "binary",
    "value": "string",
}


def _flat(numbers: DataFrame, **columns: Column) -> DataFrame:
    given = {"batch_records": F.lit(BATCH), "transactional": F.lit(False), "control": F.lit(False), **columns}
    return numbers.select(*(given.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in _COLUMNS.items()))


def _div(number: Column, by: int) -> Column:
    return F.floor(number / by).cast("long")


def all_of(*frames: DataFrame) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def as_source(flat: DataFrame) -> DataFrame:
    """With the columns of ``spark.read.format("aioproducer")``, ``includeHeaders`` and ``includeBatch``."""
    stamps = [("aioproducer.stream", "stream"), ("aioproducer.counter", "counter"), ("aioproducer.sent", "sent_ms")]
    headers = F.array(
        *(
            F.struct(F.lit(name).alias("key"), F.col(column).cast("string").cast("binary").alias("value"))
            for name, column in stamps
        )
    )
    batch = F.struct(
        F.col("batch_offset").alias("baseOffset"),
        (F.lit(61) + F.col("batch_records") * 150).alias("sizeInBytes"),
        F.col("batch_records").alias("recordCount"),
        F.lit("none").alias("compression"),
        F.col("producer_id").alias("producerId"),
        F.col("epoch").alias("producerEpoch"),
        F.col("sequence").alias("sequence"),
        F.lit(0).alias("leaderEpoch"),
        "transactional",
        "control",
    )
    return flat.select(
        "topic",
        "partition",
        "offset",
        F.timestamp_millis("timestamp_ms").alias("timestamp"),
        F.when(F.col("topic") == "clicks", 0).otherwise(1).alias("timestampType"),
        "key",
        F.col("value").cast("binary").alias("value"),
        F.when(F.col("stream").isNotNull(), headers).alias("headers"),
        batch.alias("batch"),
    )


def committed_of(flat: DataFrame) -> DataFrame:
    """What a reader of committed records is given: transaction 9, 19, … were aborted; the last may be open."""
    wanted = (F.col("transaction").isNull() | (F.col("transaction") % 10 != 9)) & ~F.col("control")
    return flat.where(wanted)


# What their producers wrote down


def events(flat: DataFrame) -> DataFrame:
    """The delivery logs: sent and acked for each record that is there once, and the end of each stream."""
    there = flat.where("stream IS NOT NULL")
    sent = _logged(there, "sent", time_ms=F.col("sent_ms"))
    acked = _logged(there, "acked", time_ms=F.col("sent_ms") + 8, sent_ms=F.col("sent_ms"), offset=F.col("offset"))
    closed = there.select("stream").distinct().withColumn("event", F.lit("close"))
    return sent.unionByName(acked).unionByName(closed, allowMissingColumns=True)


def _logged(there: DataFrame, event: str, **columns: Column) -> DataFrame:
    def given(name: str, kind: str) -> Column:
        return columns.get(name, F.lit(None)).cast(kind).alias(name)

    return there.select(
        F.lit(1).alias("schema"),
        F.lit(event).alias("event"),
        "stream",
        "counter",
        given("time_ms", "long"),
        given("sent_ms", "long"),
        "topic",
        "partition",
        given("offset", "long"),
        F.lit(None).cast("string").alias("outcome"),
    )


def as_lines(events: DataFrame) -> DataFrame:
    """The column ``value``: events as JSON, as a FileSink writes them."""
    return events.select(F.to_json(F.struct(*events.columns)).alias("value"))
