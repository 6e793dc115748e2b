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


def test_what_follows_is_judged_by_what_went_by(spark: Any, tmp_path: Path) -> None:
    """Orders in three parts; the second lacks a batch in partition 0, and has one twice in partition 1."""
    from aioproducer.spark.audit.stream import StreamAudit
    from benchmarks.audited_topics import BATCH, Shape, as_source, orders

    flat = orders(spark, Shape(3)).where("partition < 2").coalesce(1).persist()
    first = flat.where(f"offset < {4 * BATCH}")
    gap = f"NOT (partition = 0 AND batch_offset = {4 * BATCH})"
    second = flat.where(f"offset >= {4 * BATCH} AND offset < {8 * BATCH} AND {gap}")
    repeated = flat.where("partition = 1 AND batch_offset = 0").selectExpr(
        *(column for column in flat.columns if column not in ("offset", "batch_offset")),
        f"offset + {8 * BATCH} AS offset",
        f"batch_offset + {8 * BATCH} AS batch_offset",
    )
    third = flat.where(f"offset >= {8 * BATCH} AND partition = 0")
    heard: list[tuple[int, Sequence[Finding], int]] = []
    place = str(tmp_path / "findings.parquet")
    watching = StreamAudit(AuditOptions(now_ms=0), lambda *told: heard.append(told), place)
    for number, part in enumerate((first, second.unionByName(repeated), third)):
        watching.take(as_source(part), number)
    flat.unpersist()

    assert [records for records, _, _ in heard] == [8 * BATCH, 8 * BATCH, 4 * BATCH]
    assert [count for _, _, count in heard] == [0, 1 + 1 + BATCH, 1]
    found = [(Kind(row.kind), row.partition, row.first_offset) for row in spark.read.parquet(place).collect()]
    # The copies of records come after what their stream sent since: of a stream nobody knows more.
    late = [(Kind.REORDERED, 1, 8 * BATCH + place) for place in range(BATCH)]
    assert sorted(found) == sorted(
        [(Kind.HOLE, 0, 4 * BATCH), (Kind.GAP, 0, 8 * BATCH), (Kind.DUPLICATE, 1, 8 * BATCH), *late]
    )


def test_windows_of_metrics_reports(spark: Any) -> None:
    from aioproducer.spark.audit.metrics_reports import metrics_reports, windows
    from aioproducer.spark.audit.small import small_frame

    def report(number: int, window: int, in_flight: int | None, schema: int = 1) -> bytes:
        of_partition = {"3": {"in-flight-window": window, "batches-in-flight": in_flight}}
        about = {"schema": schema, "client_id": "c", "instance": "i", "number": number, "time_ms": 5, "last": False}
        metrics = {"producer-metrics": {"x": 1.0}, "producer-partition-metrics": {"t": of_partition}}
        return json.dumps({**about, "interval_ms": 1000, "health": [], "metrics": metrics}).encode()

    values = [report(0, 10, None), report(1, 40, 7), report(2, 99, 99, schema=2), b"no report"]
    reports = metrics_reports(small_frame(spark, [(value,) for value in values], "value binary"))
    assert sorted(row.number for row in reports.collect()) == [0, 1]
    assert [tuple(row) for row in windows(reports).collect()] == [("t", 3, 10, 40, 7)]
