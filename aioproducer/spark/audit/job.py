"""The audit as a batch job: topics in, Parquet tables and a summary out.

Each step is written before the next reads it, so Spark holds only what its tasks need, however large the topics are.
The driver only gets sums and examples.

All records are read for two tables only, pieces and counts, and only the columns that these need. Rules look at what
is made of these, and at suspects, which are the records that leave a doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.checks import Evidence, checks
from aioproducer.spark.audit.frames.batches import batches
from aioproducer.spark.audit.frames.counts import counts
from aioproducer.spark.audit.frames.ledger import doubtful, ledger, with_several_copies
from aioproducer.spark.audit.frames.metrics_reports import windows
from aioproducer.spark.audit.frames.observations import observe
from aioproducer.spark.audit.frames.pieces import SPAN, pieces
from aioproducer.spark.audit.frames.slices import slices
from aioproducer.spark.audit.frames.spans import compared, spans
from aioproducer.spark.audit.frames.suspects import suspects
from aioproducer.spark.audit.frames.tables import Tables
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.rules.batch_sizes import batch_sizes
from aioproducer.spark.audit.rules.equal import equal_records
from aioproducer.spark.audit.rules.examples import found_in
from aioproducer.spark.audit.rules.incomplete_logs import incomplete_logs
from aioproducer.spark.audit.rules.isolation import given, wrongly_read
from aioproducer.spark.audit.rules.keys import keys, split_keys
from aioproducer.spark.audit.rules.latencies import ACKNOWLEDGED, APPENDED, late_minutes, latencies
from aioproducer.spark.audit.rules.offsets import wrong_offsets
from aioproducer.spark.audit.rules.order import disordered, wrong_order
from aioproducer.spark.audit.rules.partitions import partitions, skewed_partitions
from aioproducer.spark.audit.rules.producers import producers
from aioproducer.spark.audit.rules.records import missing_numbers, missing_records, wrong_records
from aioproducer.spark.audit.rules.sequences import wrong_sequences
from aioproducer.spark.audit.rules.transactions import matchable, outcomes, parts, wrong_transactions
from aioproducer.spark.audit.summary import Row, Summary

MINUTES: Final = 3000
"""Rows of latencies in a summary."""


def _silent(step: str) -> None:
    """Reports no progress."""


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
    logs; without them, acknowledged records that are missing cannot be found. ``committed``: the same records, with
    ``GIVEN_COLUMNS``, read with isolation.level=read_committed up to ``stable_end``, for comparison. ``reports``: from
    a metrics topic, for figures of windows.
    """
    tables = Tables(source.sparkSession, place, on_progress)
    observed = tables.keep("observations", observe(source))
    logged = None if events is None else tables.keep("events", events)
    bounds = tables.keep("bounds", bounds, files=1)
    all_pieces = tables.keep("pieces", pieces(observed))
    all_slices = tables.keep("slices", slices(all_pieces))
    all_batches = tables.keep("batches", batches(all_slices))
    ended = tables.keep("outcomes", outcomes(all_batches))
    records = observed.where("NOT control")
    all_spans = tables.keep("compared", compared(all_pieces, logged, bounds, options.now_ms))
    not_in_order = all_spans.where("NOT in_order").select(*SPAN)
    looked_up = tables.keep("suspects", suspects(records, not_in_order, disordered(all_slices)))
    written = tables.keep("ledger", ledger(looked_up, logged, bounds, not_in_order, options.now_ms))
    in_doubt = tables.keep("doubtful", doubtful(written))
    by_span = tables.keep("spans", spans(all_spans, written))
    counted = tables.keep("counts", counts(records, contents=options.unique))
    all_keys = keys(counted)
    by_partition = tables.keep("partitions", partitions(ended, bounds), files=1)
    by_minute = tables.keep("latencies", latencies(counted, logged, bounds), files=1)
    by_producer = tables.keep("producers", producers(ended), files=1)
    transaction_parts = parts(ended)

    rules = [
        wrong_offsets(all_batches, bounds),
        wrong_sequences(all_batches, bounds),
        wrong_transactions(transaction_parts, options),
        wrong_records(in_doubt, looked_up),
        wrong_order(looked_up, with_several_copies(in_doubt)),
        missing_numbers(by_span, written, logged, options),
        late_minutes(by_minute, options),
        skewed_partitions(by_partition, options),
    ]
    if logged is not None:
        rules += [missing_records(in_doubt, logged), incomplete_logs(logged)]
    if committed is not None:
        read = tables.keep("read_committed", given(committed))
        rules.append(wrongly_read(ended, read, bounds))
    if options.unique:
        rules.append(equal_records(counted, records))
    if options.keyed:
        rules.append(split_keys(all_keys))
    findings = tables.keep("findings", reduce(DataFrame.unionByName, rules))

    on_progress("summary")
    ends = transaction_parts.groupBy("outcome").agg(F.count("*").alias("parts"), F.sum("records").alias("records"))
    transactions = {row["outcome"]: row for row in ends.collect()}
    shown: dict[str, DataFrame] = {
        "partitions": by_partition.orderBy("topic", "partition").limit(options.examples * options.top),
        "batch_sizes": batch_sizes(ended).orderBy("topic").limit(options.top),
        "producers": by_producer.orderBy(F.desc("records")).limit(options.top),
        "keys": all_keys.orderBy(F.desc("records"), "topic", "key").limit(options.top),
        "latencies": by_minute.orderBy(F.desc("minute_ms"), "topic").limit(MINUTES),
    }
    if reports is not None:
        shown["windows"] = windows(reports).orderBy(F.desc("largest")).limit(options.top)
    sizes = {"producers": by_producer.count(), "keys": all_keys.count(), "partitions": by_partition.count()}
    rows: dict[str, list[Row]] = {name: [row.asDict() for row in frame.collect()] for name, frame in shown.items()}
    totals = _totals(ended, by_span)
    seen = Evidence(
        records=totals["records"],
        sequenced=totals.pop("sequenced"),
        stamped=totals["stamped"],
        logged=totals.pop("logged"),
        timed=_timed(by_minute),
        transactional=sum(row["records"] for row in transactions.values()),
        matched=_sum(transaction_parts.where(matchable()), "records"),
        has_log=logged is not None,
        read_committed=committed is not None,
    )
    return Summary(
        topics=sorted(row["topic"] for row in bounds.select("topic").distinct().collect()),
        now_ms=options.now_ms,
        found=found_in(findings, records, options),
        checks=checks(seen, options),
        totals=totals,
        transactions={outcome: row["parts"] for outcome, row in transactions.items()},
        left_out={name: count - len(rows[name]) for name, count in sizes.items() if count > len(rows[name])},
        **rows,
    )


def _timed(by_minute: DataFrame) -> int:
    """Records of which is known how long they took: by their log, or by the broker's timestamp. Some are in both."""
    return max(_sum(by_minute.where(F.col("what") == what), "records") for what in (APPENDED, ACKNOWLEDGED))


def _sum(frame: DataFrame, column: str) -> int:
    (row,) = frame.agg(F.coalesce(F.sum(column), F.lit(0)).alias("sum")).collect()
    return int(row["sum"])


def _totals(ended: DataFrame, by_span: DataFrame) -> dict[str, Any]:
    of_batches = ended.agg(
        F.coalesce(F.sum("records"), F.lit(0)).alias("records"),
        F.coalesce(F.sum(F.when(F.col("base_sequence").isNotNull(), F.col("records"))), F.lit(0)).alias("sequenced"),
        F.count("*").alias("batches"),
        F.coalesce(F.sum(F.col("batch_bytes").cast("long")), F.lit(0)).alias("bytes"),
        F.min("first_ms").alias("first_ms"),
        F.max("last_ms").alias("last_ms"),
    )
    of_spans = by_span.agg(
        F.coalesce(F.sum("copies"), F.lit(0)).alias("stamped"),
        F.coalesce(F.sum("logged"), F.lit(0)).alias("logged"),
        F.count_distinct("stream").alias("streams"),
        F.coalesce(F.sum("acknowledged"), F.lit(0)).alias("acknowledged"),
    )
    return {**of_batches.collect()[0].asDict(), **of_spans.collect()[0].asDict()}
