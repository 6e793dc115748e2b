"""Counts how often an audit reads all records, and checks Spark's driver memory, by the executed plans."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from aioproducer.spark.audit.options import AuditOptions
from tests.spark.audit.auditing import audited

pytestmark = pytest.mark.conformance

ROUNDS = 10
RECORDS = 50_600


def audit(spark: Any, made: Any, place: Path) -> Any:
    from benchmarks.spark.audited_topics import Shape

    return audited(spark, made, place, AuditOptions(now_ms=Shape(ROUNDS).now_ms))


def scans(nodes: list[Any], place: Path) -> Counter[str]:
    """How often each table of the audit was read."""
    names = [
        table.name.removesuffix(".parquet")
        for node in nodes
        if node.name.startswith("Scan")
        for table in (place / "audit").iterdir()
        if f"{table.name}]" in node.text or f"{table.name}," in node.text
    ]
    return Counter(names)


@pytest.mark.long
def test_records_are_read_twice(spark: Any, tmp_path: Path) -> None:
    """Once for pieces, once for counts, a few columns; for findings and the ledger not at all."""
    from benchmarks.spark.audited_topics import Shape, topics

    from .plans import executed

    with executed(spark) as nodes:
        summary = audit(spark, topics(spark, Shape(ROUNDS)), tmp_path)
    assert summary.ok
    counted = scans(nodes(), tmp_path)
    assert counted["observations"] == 2, counted
    assert counted["pieces"] == 2, counted
    assert counted["events"] == 5, counted


@pytest.mark.long
def test_a_large_table_of_findings_stays_out_of_the_driver(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each order is there twice: more keys to look up than are sent to all tasks."""
    from aioproducer.spark.audit.finding import Kind
    from aioproducer.spark.audit.frames import matching
    from benchmarks.spark.audited_topics import Shape, Topics, all_of, as_source, events, orders

    from .plans import executed

    monkeypatch.setattr(matching, "MOST_SENT", 1000)
    shape = Shape(ROUNDS)
    once = orders(spark, shape)
    end = shape.orders // 6
    again = once.selectExpr(
        *(column for column in once.columns if column not in ("offset", "batch_offset", "sequence")),
        f"offset + {end} AS offset",
        f"batch_offset + {end} AS batch_offset",
        f"sequence + {shape.rounds * 100} AS sequence",
    )
    twice = all_of(once, again.select(*once.columns))
    with executed(spark) as nodes:
        summary = audit(spark, Topics(twice, events(once), as_source(twice)), tmp_path)
    found = {found.kind: found.records for found in summary.found}
    assert found[Kind.DUPLICATE] == 2 * shape.orders
    read = scans(nodes(), tmp_path)["observations"]
    assert read == 4, "for pieces and counts as always, for all that is in doubt, and for examples"
    sent = [node.rows for node in nodes() if node.name == "BroadcastExchange"]
    assert sent, "small tables are"
    assert max(rows or 0 for rows in sent) <= 1000
