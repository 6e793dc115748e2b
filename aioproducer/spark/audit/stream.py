"""The audit of what is being written: the rules for single partitions, over one micro-batch and the tails before it.

A stream is judged by what it has seen so far. Whatever needs all the data (acknowledged records that never arrive, torn
transactions, two copies of a record with different sequences) is left to the batch job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Finding
from aioproducer.spark.audit.frames.batches import batches
from aioproducer.spark.audit.frames.counts import counts
from aioproducer.spark.audit.frames.ledger import RECORD
from aioproducer.spark.audit.frames.observations import observe
from aioproducer.spark.audit.frames.pieces import pieces, span
from aioproducer.spark.audit.frames.slices import slices
from aioproducer.spark.audit.frames.suspects import suspects
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.rules.findings import finding_of
from aioproducer.spark.audit.rules.latencies import late_minutes, latencies
from aioproducer.spark.audit.rules.offsets import wrong_offsets
from aioproducer.spark.audit.rules.order import disordered, wrong_order
from aioproducer.spark.audit.rules.sequences import wrong_sequences
from aioproducer.spark.audit.tails import KeptTails, Tails, after
from aioproducer.timing.clock import Clock, SystemClock

MICRO_BATCH = "micro_batch"
"""The column of the findings that says when they were found."""


def judge(
    tails: Tails, observations: DataFrame, slices: DataFrame, batches: DataFrame, options: AuditOptions
) -> DataFrame:
    """The findings in the records that follow the tails."""
    records = observations.where("NOT control")
    nothing = observations.select(*RECORD).limit(0)
    no_spans = observations.select("stream", span()).limit(0)
    known = tails.streams.select(*slices.columns)
    anywhere = tails.bounds.limit(0)  # a stream does not know where a log begins
    return reduce(
        DataFrame.unionByName,
        [
            wrong_offsets(batches, tails.bounds),
            wrong_sequences(batches, anywhere, tails.batches),
            wrong_order(suspects(records, no_spans, disordered(slices.unionByName(known))), nothing),
            late_minutes(latencies(counts(records)), options),
        ],
    )


class StreamAudit:
    """Takes the micro-batches of ``foreachBatch``, one after the other, and reports what it finds in each.

    ``on_batch`` gets the number of records, the findings (at most ``options.examples``), and how many there are.
    ``checkpoint`` is a directory for what it must remember from one to the next. With ``place`` all findings go to the
    Parquet files there, once for each micro-batch, even if that is taken again.
    """

    def __init__(
        self,
        options: AuditOptions,
        on_batch: Callable[[int, Sequence[Finding], int], None],
        checkpoint: str,
        place: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._options = options
        self._on_batch = on_batch
        self._place = place
        self._clock: Clock = SystemClock() if clock is None else clock
        self._tails = KeptTails(checkpoint)

    def take(self, source: DataFrame, number: int) -> None:
        """The micro-batch of this number, with the columns of ``source_schema``."""
        observations = observe(source).persist()
        all_slices = slices(pieces(observations)).persist()
        all_batches = batches(all_slices)
        try:
            tails = self._tails.before(source.sparkSession, number)
            findings = judge(tails, observations, all_slices, all_batches, self._options).persist()
            try:
                self._tell(number, observations, findings)
            finally:
                findings.unpersist()
            self._tails.keep(number, after(tails, all_slices, all_batches, self._clock.time_ms()))
        finally:
            all_slices.unpersist()
            observations.unpersist()

    def _tell(self, number: int, observations: DataFrame, findings: DataFrame) -> None:
        count = findings.count()
        if count and self._place is not None:
            findings.write.mode("overwrite").parquet(f"{self._place}/{MICRO_BATCH}={number}")
        first = findings.orderBy("topic", "partition", "first_offset").limit(self._options.examples)
        shown = [finding_of(row) for row in first.collect()] if count else []
        self._on_batch(observations.where(~F.col("control")).count(), shown, count)
