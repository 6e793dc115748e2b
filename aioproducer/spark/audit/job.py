"""The audit as a batch job: topics in, Parquet tables and a summary out.

Each step is written before the next reads it, so Spark holds only what its tasks need, however large the topics are.
The driver only gets sums and examples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.batch_sizes import batch_sizes
from aioproducer.spark.audit.batches import batches
from aioproducer.spark.audit.equal import equal_records
from aioproducer.spark.audit.events import incomplete_logs
from aioproducer.spark.audit.examples import found_in
from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.isolation import wrongly_read
from aioproducer.spark.audit.keys import keys, split_keys
from aioproducer.spark.audit.latencies import late_minutes, latencies
from aioproducer.spark.audit.ledger import ledger, with_several_copies
from aioproducer.spark.audit.metrics_reports import windows
from aioproducer.spark.audit.observations import observe
from aioproducer.spark.audit.offsets import wrong_offsets
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.order import wrong_order
from aioproducer.spark.audit.partitions import partitions, skewed_partitions
from aioproducer.spark.audit.producers import producers
from aioproducer.spark.audit.records import missing_numbers, missing_records, wrong_records
from aioproducer.spark.audit.sequences import wrong_sequences
from aioproducer.spark.audit.summary import Row, Summary
from aioproducer.spark.audit.tables import Tables
from aioproducer.spark.audit.transactions import outcomes, parts, wrong_transactions

MINUTES: Final = 3000
"""Rows of latencies in a summary."""


def _silent(step: str) -> None:
    """Progress that nobody asked for."""


def audit(
    source: DataFrame,
    bounds: DataFrame,
    place: str,
    options: AuditOptions,
    *,
    events: DataFrame | None = None,
    committed: DataFrame | None = None,
    reports: DataFrame | None = None,
    on_progress: Callable[[str], None] = _silent,
) -> Summary:
    """Audits what ``source`` reads, and writes all tables to ``place``.

    ``source``: all records of the topics with the columns of ``source_schema``, isolation.level=read_uncommitted.
    ``bounds``: of every partition, with the columns of ``BOUNDS_SCHEMA``. ``events``: from the producers' delivery
    logs; without them, acknowledged records that are missing cannot be found. ``committed``: the same as ``source``,
    read with isolation.level=read_committed up to ``stable_end``, for comparison. ``reports``: from a metrics topic,
    for figures of windows.
    """
    tables = Tables(source.sparkSession, place, on_progress)
    observed = tables.keep("observations", observe(source))
    told = None if events is None else tables.keep("events", events)
    bounds = tables.keep("bounds", bounds, files=1)
    all_batches = tables.keep("batches", batches(observed))
    ended = tables.keep("outcomes", outcomes(all_batches))
    records = observed.where("NOT control")
    written = tables.keep("ledger", ledger(records, told, bounds, options))
    all_keys = tables.keep("keys", keys(records))
    by_partition = tables.keep("partitions", partitions(ended, bounds), files=1)
    by_minute = tables.keep("latencies", latencies(records, written), files=1)
    by_producer = tables.keep("producers", producers(ended), files=1)
    transaction_parts = parts(ended)

    rules = [
        wrong_offsets(all_batches, bounds),
        wrong_sequences(all_batches, bounds),
        wrong_transactions(transaction_parts, options),
        wrong_records(written, records),
        wrong_order(records, with_several_copies(written)),
        missing_numbers(written, told, options),
        late_minutes(by_minute, options),
        skewed_partitions(by_partition, options),
    ]
    if told is not None:
        rules += [missing_records(written, told), incomplete_logs(told)]
    if committed is not None:
        read = tables.keep("read_committed", batches(observe(committed)))
        rules.append(wrongly_read(ended, read, bounds))
    if options.unique:
        rules.append(equal_records(records))
    if options.keyed:
        rules.append(split_keys(all_keys))
    findings = tables.keep("findings", reduce(DataFrame.unionByName, rules))

    on_progress("summary")
    transactions = transaction_parts.groupBy("outcome").count().collect()
    shown: dict[str, DataFrame] = {
        "partitions": by_partition.orderBy("topic", "partition").limit(options.examples * options.top),
        "batch_sizes": batch_sizes(ended).orderBy("topic").limit(options.top),
        "producers": by_producer.orderBy(F.desc("records")).limit(options.top),
        "keys": all_keys.orderBy(F.desc("records"), "topic", "key").limit(options.top),
        "latencies": by_minute.orderBy(F.desc("minute_ms"), "topic").limit(MINUTES),
    }
    if reports is not None:
        shown["windows"] = windows(reports).orderBy(F.desc("largest")).limit(options.top)
    counts = {"producers": by_producer.count(), "keys": all_keys.count(), "partitions": by_partition.count()}
    rows: dict[str, list[Row]] = {name: [row.asDict() for row in frame.collect()] for name, frame in shown.items()}
    return Summary(
        topics=sorted(row["topic"] for row in bounds.select("topic").distinct().collect()),
        now_ms=options.now_ms,
        found=found_in(findings, records, options),
        totals=_totals(ended, written),
        transactions={row["outcome"]: row["count"] for row in transactions},
        unchecked=_unchecked(told=told is not None, read=committed is not None),
        left_out={name: count - len(rows[name]) for name, count in counts.items() if count > len(rows[name])},
        **rows,
    )


def _unchecked(*, told: bool, read: bool) -> dict[str, list[Kind]]:
    """What cannot be found, as its rule had nothing to look at; what is checked only on request is not among it."""
    unchecked = {}
    if not told:
        of_logs = [Kind.MISSING, Kind.MISPLACED, Kind.RESURRECTED, Kind.UNENDED, Kind.INCOMPLETE_LOG]
        unchecked["without a delivery log"] = of_logs
    if not read:
        unchecked["without reading as readers of committed records do"] = [Kind.ABORTED_READ, Kind.UNREAD]
    return unchecked


def _totals(ended: DataFrame, written: DataFrame) -> Row:
    of_batches = ended.agg(
        F.coalesce(F.sum("records"), F.lit(0)).alias("records"),
        F.count("*").alias("batches"),
        F.coalesce(F.sum(F.col("batch_bytes").cast("long")), F.lit(0)).alias("bytes"),
        F.min("first_ms").alias("first_ms"),
        F.max("last_ms").alias("last_ms"),
    )
    of_ledger = written.agg(
        F.coalesce(F.sum("copies"), F.lit(0)).alias("stamped"),
        F.count_distinct("stream").alias("streams"),
        F.coalesce(F.sum("acked"), F.lit(0)).alias("acknowledged"),
    )
    return {**of_batches.collect()[0].asDict(), **of_ledger.collect()[0].asDict()}
