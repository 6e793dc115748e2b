"""What the ledger says about single records: missing, elsewhere, twice, there though told not sent, never ended."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.events import TORN
from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.ledger import RECORD
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.tell import ONE_RECORD, tell


def wrong_records(ledger: DataFrame, observations: DataFrame) -> DataFrame:
    """Records whose copies do not match what was reported."""
    place = F.col("acked_place")
    elsewhere = (
        place.isNotNull() & (F.col("copies").isin(1, 2)) & ~place.isin(F.col("first_place"), F.col("last_place"))
    )
    kinds = {
        Kind.RESURRECTED: "not_sent > 0 AND copies > 0",
        # Copies with the same sequence are reported as batches.
        Kind.DUPLICATE: "copies > 1 AND first_write <> last_write",
        Kind.MISPLACED: elsewhere,
    }
    wrong = ledger.select(*RECORD, "copies", F.array_compact(F.array(*_named(kinds))).alias("kinds"))
    wrong = wrong.where(F.size("kinds") > 0)
    copies = observations.select("topic", "partition", "offset", "producer_id", "producer_epoch", "key", *RECORD)
    found = wrong.join(copies, list(RECORD)).select("*", F.explode("kinds").alias("kind"))
    return tell(
        found,
        F.col("kind"),
        F.format_string("one of %d", "copies"),
        **ONE_RECORD,
    )


def missing_records(ledger: DataFrame, events: DataFrame) -> DataFrame:
    """Records that were acknowledged and are nowhere; and records of closed producers that never ended."""
    missing = ledger.where("due > 0 AND copies = 0").select(*RECORD)
    acked = events.where("event = 'acked'").select(*RECORD, "topic", "partition", "offset", "time_ms")
    told = F.format_string("acknowledged at %s UTC", F.timestamp_millis("time_ms").cast("string"))
    offset = F.when(F.col("offset") >= 0, F.col("offset"))
    numbers = {"first_counter": "counter", "last_counter": "counter"}
    lost = tell(
        acked.join(missing, list(RECORD)), Kind.MISSING, told, first_offset=offset, last_offset=offset, **numbers
    )
    return lost.unionByName(_unended(ledger, events))


def _unended(ledger: DataFrame, events: DataFrame) -> DataFrame:
    """If lines are missing from the logs, the ends may be among them: then nothing is reported."""
    closed = events.where("event = 'close'").select("stream").distinct()
    gaps = events.where(F.col("event").isin("lost", TORN)).select("event").limit(1)
    without_end = ledger.where("sent > 0 AND acked + not_sent + unknown = 0")
    found = without_end.join(F.broadcast(closed), "stream", "left_semi").join(
        F.broadcast(gaps), F.lit(True), "left_anti"
    )
    return tell(
        found,
        Kind.UNENDED,
        F.format_string("sent at %s UTC", F.timestamp_millis("sent_ms").cast("string")),
        first_counter="counter",
        last_counter="counter",
    )


def missing_numbers(ledger: DataFrame, events: DataFrame | None, options: AuditOptions) -> DataFrame:
    """Gaps in the numbers of streams without a log: the missing records failed or were lost; only a log can tell."""
    there = ledger.where("copies > 0").select(*RECORD)
    if options.partial:
        there = there.limit(0)
    if events is not None:
        logged = events.where("event <> 'close'").select("stream").distinct()
        there = there.join(F.broadcast(logged), "stream", "left_anti")
    before = F.coalesce(F.lag("counter").over(Window.partitionBy("stream").orderBy("counter")), F.lit(0))
    numbered = there.withColumn("before", before).where("counter > before + 1")
    return tell(
        numbered,
        Kind.GAP,
        F.format_string("numbers from %d to %d are in none of the topics", F.col("before") + 1, F.col("counter") - 1),
        first_counter=F.col("before") + 1,
        last_counter=F.col("counter") - 1,
        records=F.col("counter") - F.col("before") - 1,
    )


def _named(kinds: dict[Kind, str | object]) -> list[object]:
    return [
        F.when(F.expr(condition) if isinstance(condition, str) else condition, kind.value)
        for kind, condition in kinds.items()
    ]
