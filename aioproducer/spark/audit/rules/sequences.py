"""The sequences of a producer are consecutive in each partition, epoch by epoch: gaps, duplicates, reorderings.

The broker checks sequences, too. A gap means that the log lost a batch or should not have taken the next one; a
duplicate is a retry that the broker did not recognise.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.frames.pieces import SEQUENCES
from aioproducer.spark.audit.frames.rows_before import rows_before
from aioproducer.spark.audit.rules.findings import findings_of

_PRODUCER = ("topic", "partition", "producer_id")
_EPOCH = (*_PRODUCER, "producer_epoch")


def wrong_sequences(batches: DataFrame, bounds: DataFrame, went_by: DataFrame | None = None) -> DataFrame:
    """Where sequences are not those that were due. Of a partition that is read from offset 0 on (``bounds``), the
    first of an epoch is 0; of others the beginning may have been deleted.

    ``went_by``: the ``newest`` of the batches that were judged before these. What is not beyond them is there once
    more: whether it had been missing is known no longer.
    """
    numbered = _positions(_sequenced(batches, went_by))
    before = rows_before(Window.partitionBy(*_EPOCH).orderBy("position", "first_offset"))
    from_zero = bounds.where("first = 0").select("topic", "partition", F.lit(0).alias("beginning"))
    reached = F.greatest(F.max("position_end").over(before), "passed")
    placed = (
        numbered.join(F.broadcast(from_zero), ["topic", "partition"], "left")
        .withColumn("due", F.coalesce(reached, "beginning", "position"))
        .withColumn("twice", F.least("due", "position_end") - F.col("position"))
        .where("NOT went_by")
    )
    sequence = F.pmod(F.col("position"), F.lit(SEQUENCES))
    missing = F.col("position") - F.col("due")
    gaps = findings_of(
        placed.where(missing > 0),
        Kind.GAP,
        F.format_string("sequence %d where %d was due", sequence, F.pmod(F.col("due"), F.lit(SEQUENCES))),
        # Only the batch behind the gap is there: the finding says where it begins, and no more.
        last_offset="first_offset",
        first_counter=F.lit(None),
        last_counter=F.lit(None),
        records=missing,
    )
    duplicates = findings_of(
        placed.where("twice > 0"),
        Kind.DUPLICATE,
        F.format_string("%d records from sequence %d on are there once more", "twice", sequence),
        records="twice",
    )
    late = findings_of(
        placed.where("twice <= 0 AND position < seen"),
        Kind.REORDERED,
        F.format_string("sequence %d comes after %d", sequence, F.pmod(F.col("seen") - 1, F.lit(SEQUENCES))),
        records="batch_records",
    )
    return gaps.unionByName(duplicates).unionByName(late).unionByName(_old_epochs(numbered))


def _sequenced(batches: DataFrame, went_by: DataFrame | None = None) -> DataFrame:
    """Those that have sequences; and which of them were judged before."""
    all_batches = batches.withColumn("went_by", F.lit(False))
    if went_by is not None:
        all_batches = all_batches.unionByName(went_by.select(*batches.columns, F.lit(True).alias("went_by")))
    return all_batches.where("base_sequence IS NOT NULL AND NOT control")


def _positions(batches: DataFrame) -> DataFrame:
    """Where batches are in their epoch, as if sequences never began anew (``position`` to ``position_end``), the
    furthest position that the log had before (``seen``), and that of what was judged before (``passed``)."""
    by_offset = Window.partitionBy(*_EPOCH).orderBy("first_offset")
    step = F.col("base_sequence") - F.lag("base_sequence").over(by_offset)
    half = SEQUENCES // 2
    turn = F.when(step < -half, 1).when(step > half, -1).otherwise(0)
    position = F.col("base_sequence") + F.sum("turn").over(by_offset) * F.lit(SEQUENCES)
    before = rows_before(by_offset)
    return (
        batches.withColumn("turn", turn)
        .withColumn("position", position)
        .withColumn("position_end", F.col("position") + F.col("batch_records"))
        .withColumn("seen", F.max("position_end").over(before))
        .withColumn("passed", F.max(F.when(F.col("went_by"), F.col("position_end"))).over(before))
    )


def _old_epochs(batches: DataFrame) -> DataFrame:
    """Batches of an epoch that had ended: their writer should have been fenced."""
    before = rows_before(Window.partitionBy(*_PRODUCER).orderBy("first_offset"))
    return findings_of(
        batches.withColumn("newest", F.max("producer_epoch").over(before)).where("producer_epoch < newest"),
        Kind.REORDERED,
        F.format_string("epoch %d writes after epoch %d", "producer_epoch", "newest"),
        records="batch_records",
    )


def newest(batches: DataFrame) -> DataFrame:
    """The furthest batch of each producer in each partition: what comes later is judged by these."""
    numbered = _positions(_sequenced(batches))
    furthest = Window.partitionBy(*_PRODUCER).orderBy(F.desc("producer_epoch"), F.desc("position"), "first_offset")
    return numbered.withColumn("rank", F.row_number().over(furthest)).where("rank = 1").select(*batches.columns)
