"""Findings about single records: missing, elsewhere, twice, present but reported as not sent, unended."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.events import TORN
from aioproducer.spark.audit.frames.ledger import RECORD, elsewhere, without_end
from aioproducer.spark.audit.frames.matching import matching
from aioproducer.spark.audit.frames.pieces import SPAN, span
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.rules.findings import ONE_RECORD, findings_of


def wrong_records(doubtful: DataFrame, suspects: DataFrame) -> DataFrame:
    """Records whose copies do not match what was reported."""
    kinds = {
        Kind.RESURRECTED: F.expr("not_sent AND copies > 0"),
        # Copies with the same sequence are reported as batches.
        Kind.DUPLICATE: F.expr("copies > 1 AND first_write <> last_write"),
        Kind.MISPLACED: elsewhere(),
    }
    named = [F.when(condition, kind.value) for kind, condition in kinds.items()]
    wrong = doubtful.select(*RECORD, "copies", F.array_compact(F.array(*named)).alias("kinds"))
    copies = suspects.select("topic", "partition", "offset", "producer_id", "producer_epoch", "key", *RECORD)
    found = matching(copies, wrong.where(F.size("kinds") > 0), RECORD).select("*", F.explode("kinds").alias("kind"))
    return findings_of(
        found,
        F.col("kind"),
        F.format_string("one of %d", "copies"),
        **ONE_RECORD,
    )


def missing_records(doubtful: DataFrame, events: DataFrame) -> DataFrame:
    """Records that were acknowledged and are nowhere; and records of closed producers that never ended."""
    missing = doubtful.where("due AND copies = 0").select(*RECORD)
    acked = events.where("event = 'acked'").select(*RECORD, "topic", "partition", "offset", "time_ms")
    acknowledged = F.format_string("acknowledged at %s UTC", F.timestamp_millis("time_ms").cast("string"))
    offset = F.when(F.col("offset") >= 0, F.col("offset"))
    numbers = {"first_counter": "counter", "last_counter": "counter"}
    lost = findings_of(
        matching(acked, missing, RECORD), Kind.MISSING, acknowledged, first_offset=offset, last_offset=offset, **numbers
    )
    return lost.unionByName(_unended(doubtful, events))


def _unended(doubtful: DataFrame, events: DataFrame) -> DataFrame:
    """If lines are missing from the logs, the ends may be among them: then nothing is reported."""
    closed = events.where("event = 'close'").select("stream").distinct()
    gaps = events.where(F.col("event").isin("lost", TORN)).select("event").limit(1)
    found = (
        doubtful.where(without_end())
        .join(closed.hint("merge"), "stream", "left_semi")
        .join(F.broadcast(gaps), F.lit(True), "left_anti")
    )
    return findings_of(
        found,
        Kind.UNENDED,
        F.format_string("sent at %s UTC", F.timestamp_millis("sent_ms").cast("string")),
        first_counter="counter",
        last_counter="counter",
    )


def missing_numbers(spans: DataFrame, ledger: DataFrame, events: DataFrame | None, options: AuditOptions) -> DataFrame:
    """Gaps in the numbers of streams without a log: the missing records failed or were lost; only a log shows which.

    Gaps between spans come from the spans alone; numbers are looked at only in spans that are not complete.
    """
    there = spans.where("numbers > 0")
    if options.partial:
        there = there.limit(0)
    if events is not None:
        logged = events.where("event <> 'close'").select("stream").distinct()
        there = there.join(logged.hint("merge"), "stream", "left_anti")
    before = F.coalesce(F.lag("last").over(Window.partitionBy("stream").orderBy("span")), F.lit(0))
    between = there.select("stream", F.col("first").alias("counter"), before.alias("before"))
    torn = there.where("last - first + 1 > numbers").select(*SPAN)
    numbers = ledger.where("copies > 0").select("stream", "counter", span())
    within = matching(numbers, torn, SPAN).select(
        "stream", "counter", F.lag("counter").over(Window.partitionBy(*SPAN).orderBy("counter")).alias("before")
    )
    return findings_of(
        between.unionByName(within).where("counter > before + 1"),
        Kind.GAP,
        F.format_string("numbers from %d to %d are in none of the topics", F.col("before") + 1, F.col("counter") - 1),
        first_counter=F.col("before") + 1,
        last_counter=F.col("counter") - 1,
        records=F.col("counter") - F.col("before") - 1,
    )
