"""The audit of a stream, micro-batch by micro-batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aioproducer.spark.audit.finding import Finding, Kind
from aioproducer.spark.audit.options import AuditOptions

pytestmark = pytest.mark.conformance


@pytest.mark.long
def test_a_micro_batch_is_judged_by_those_before_it(spark: Any, tmp_path: Path) -> None:
    """Orders in three parts; the second lacks a batch in partition 0, and the first one of partition 1 comes again, and
    once more in the third, when its producer has long gone on."""
    from aioproducer.spark.audit.stream import StreamAudit
    from benchmarks.spark.audited_topics import BATCH, Shape, as_source, orders

    flat = orders(spark, Shape(4)).where("partition < 2").coalesce(1).persist()
    first = flat.where(f"offset < {4 * BATCH}")
    gap = f"NOT (partition = 0 AND batch_offset = {8 * BATCH})"
    second = flat.where(f"offset >= {4 * BATCH} AND offset < {12 * BATCH} AND {gap}")
    third = flat.where(f"offset >= {12 * BATCH} AND partition = 0")

    def again(offset: int) -> Any:
        """The first batch of partition 1, at another place."""
        return flat.where("partition = 1 AND batch_offset = 0").selectExpr(
            *(column for column in flat.columns if column not in ("offset", "batch_offset")),
            f"offset + {offset} AS offset",
            f"batch_offset + {offset} AS batch_offset",
        )

    heard: list[tuple[int, Sequence[Finding], int]] = []
    place = str(tmp_path / "findings.parquet")
    parts = (first, second.unionByName(again(12 * BATCH)), third.unionByName(again(13 * BATCH)))
    for number in (0, 1, 1, 2):  # stopped after the second was judged, and before Spark knew
        # Each by a new one: what it has to remember is in the checkpoint alone.
        watching = StreamAudit(
            AuditOptions(now_ms=0), lambda *found: heard.append(found), str(tmp_path / "tails"), place
        )
        watching.take(as_source(parts[number]), number)
    flat.unpersist()

    assert [records for records, _, _ in heard] == [8 * BATCH, 16 * BATCH, 16 * BATCH, 5 * BATCH]
    found = [(Kind(row.kind), row.partition, row.first_offset) for row in spark.read.parquet(place).collect()]
    # The copies of records come after what their stream sent since: more is not kept of a stream.
    late = [(Kind.REORDERED, 1, copy * BATCH + place) for copy in (12, 13) for place in range(BATCH)]
    planted = [
        (Kind.HOLE, 0, 8 * BATCH),
        (Kind.DUPLICATE, 1, 12 * BATCH),
        (Kind.GAP, 0, 12 * BATCH),
        (Kind.DUPLICATE, 1, 13 * BATCH),
    ]
    assert sorted(found) == sorted([*planted, *late])
    assert [count for _, _, count in heard] == [0, 2 + BATCH, 2 + BATCH, 2 + BATCH]


@pytest.mark.long
def test_a_producer_idle_for_a_day_is_forgotten(spark: Any, tmp_path: Path) -> None:
    """What is kept goes by the producers of a day, however many there ever were."""
    from aioproducer.spark.audit.frames.batches import batches
    from aioproducer.spark.audit.frames.observations import observe
    from aioproducer.spark.audit.frames.pieces import pieces
    from aioproducer.spark.audit.frames.slices import slices
    from aioproducer.spark.audit.tails import FORGOTTEN_AFTER_MS, KeptTails, after
    from benchmarks.spark.audited_topics import BATCH, Shape, as_source, orders

    flat = orders(spark, Shape(1)).where("partition = 0").coalesce(1)
    kept = KeptTails(str(tmp_path))
    # Each producer writes one batch, and is then heard of no more.
    for turn, now_ms in enumerate((0, 1, FORGOTTEN_AFTER_MS)):
        came = slices(pieces(observe(as_source(flat.where(f"batch_offset = {turn * BATCH}")))))
        kept.keep(turn, after(kept.before(spark, turn), came, batches(came), now_ms))
    tails = kept.before(spark, 3)
    assert sorted(row.producer_id for row in tails.batches.collect()) == [1001, 1002]
    assert sorted(row.stream for row in tails.streams.collect()) == ["stream-1", "stream-2"]
    assert [(row.partition, row.end) for row in tails.bounds.collect()] == [(0, 3 * BATCH)]


def test_windows_of_metrics_reports(spark: Any) -> None:
    from aioproducer.spark.audit.frames.local_frame import local_frame
    from aioproducer.spark.audit.frames.metrics_reports import metrics_reports, windows

    def report(number: int, window: int, in_flight: int | None, schema: int = 1) -> bytes:
        of_partition = {"3": {"in-flight-window": window, "batches-in-flight": in_flight}}
        about = {"schema": schema, "client_id": "c", "instance": "i", "number": number, "time_ms": 5, "last": False}
        metrics = {"producer-metrics": {"x": 1.0}, "producer-partition-metrics": {"t": of_partition}}
        return json.dumps({**about, "interval_ms": 1000, "health": [], "metrics": metrics}).encode()

    values = [report(0, 10, None), report(1, 40, 7), report(2, 99, 99, schema=2), b"no report"]
    reports = metrics_reports(local_frame(spark, [(value,) for value in values], "value binary"))
    assert sorted(row.number for row in reports.collect()) == [0, 1]
    assert [tuple(row) for row in windows(reports).collect()] == [("t", 3, 10, 40, 7)]
