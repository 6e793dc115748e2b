"""The whole audit: of topics in order it says so, and of planted faults it finds each and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.report.page import html
from tests.spark.audit.auditing import audited

pytestmark = pytest.mark.conformance

ROUNDS = 10


def audit(spark: Any, faulty: bool, place: Path) -> Any:
    from benchmarks.spark.audited_topics import Shape, topics
    from benchmarks.spark.planted_faults import faulty_topics

    shape = Shape(ROUNDS)
    made = (faulty_topics if faulty else topics)(spark, shape)
    return audited(spark, made, place, AuditOptions(now_ms=shape.now_ms, unique=True, keyed=True))


@pytest.fixture(scope="module")
def faulty(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return audit(spark, True, tmp_path_factory.mktemp("faulty"))


@pytest.mark.long
def test_nothing_is_found_where_all_is_in_order(spark: Any, tmp_path: Path) -> None:
    summary = audit(spark, False, tmp_path)
    assert [str(finding) for found in summary.found for finding in found.examples] == []
    assert summary.ok
    stamped = summary.totals["stamped"]
    assert summary.totals["records"] - stamped == 20_000, "clicks have neither sequences nor stamps"
    assert {check.claim: check.checked for check in summary.checks if not (check.complete or check.optional)} == {
        "sequences of producers follow each other": stamped,
        "acknowledged records are there, and failed ones are not": stamped,
        "no number of a stream is missing": stamped,
        "records are in the order in which they were sent": stamped,
    }
    assert '<p class="verdict warning">' in html(summary)
    assert spark.read.parquet(f"{tmp_path}/audit/findings.parquet").count() == 0


def test_each_planted_fault_is_found_and_nothing_else(faulty: Any) -> None:
    from benchmarks.spark.planted_faults import PLANTED

    found = {found.kind: found.records for found in faulty.found}
    of_size = {kind: found.pop(kind) for kind in (Kind.LATE, Kind.SKEW)}
    assert found == PLANTED
    # All that is in the minute of orders: without the gap, with what is there once more.
    assert of_size == {Kind.LATE: 24_000 - 100 + 100 + 2, Kind.SKEW: 10_000}
    assert not faulty.ok


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.MISSING, "orders-5@4001 · stream stream-0 number 6002"),
        (Kind.MISPLACED, "orders-5@20 · producer 1000 epoch 0, stream stream-0 number 521, key key-5-520 · one of 1"),
        (
            Kind.GAP,
            "orders-0@1100 · producer 1000 epoch 0, stream stream-0, key key-0-200 · sequence 300 where 200 was due",
        ),
        (Kind.HOLE, "clicks-1@0…99 · 99 records are there between these offsets"),
        (
            Kind.DUPLICATE,
            "orders-1@4000…4099 · producer 1000 epoch 0, stream stream-0 number 101…200, key key-1-100 · 100 records",
        ),
        (Kind.REORDERED, "orders-4@11 · producer 1000 epoch 0, stream stream-0 number 411, key key-4-411 · number 411"),
        (
            Kind.TORN,
            "payments-1@303…402 · producer 2000 epoch 3, stream payments number 1901…2000, key account-1 · ",
        ),
        (
            Kind.OPEN,
            "payments-0@1010…1109 · producer 2000 epoch 10, stream payments number 6001…6100, key account-0 · no ",
        ),
        (
            Kind.ABORTED_READ,
            "payments-2@909…1008 · producer 2000 epoch 9, stream payments number 5601…5700, key account-2 · of a",
        ),
        (Kind.SKEW, "clicks-0 · 5.0 times the records of the average partition"),
    ],
)
def test_findings_name_place_producer_and_key(faulty: Any, kind: Kind, text: str) -> None:
    (found,) = [found for found in faulty.found if found.kind is kind]
    assert any(f"{kind.value} · {text}" in str(finding) for finding in found.examples), list(map(str, found.examples))


def test_the_report_has_verdict_findings_and_plots(faulty: Any) -> None:
    text = html(faulty)
    assert '<p class="verdict critical">' in text
    assert all(f"<h3>{kind.value}</h3>" in text for kind in (Kind.MISSING, Kind.TORN, Kind.LATE))
    assert text.count("<figure>") == 2 + 1 + 3, "appended to two topics, acknowledged, partitions of three"


def test_figures(faulty: Any) -> None:
    assert faulty.topics == ["clicks", "orders", "payments"]
    assert faulty.transactions == {"aborted": 6 + 1, "committed": 6 * 9 - 1, "open": 6}
    assert [row["batches"] for row in faulty.batch_sizes] == [200, 240 - 1 + 3, 66]
    assert faulty.keys[0]["records"] == 1100
    assert {row["topic"] for row in faulty.latencies} == {None, "orders", "payments"}


def test_a_topic_without_records_is_not_skewed(spark: Any) -> None:
    from aioproducer.spark.audit.rules.partitions import skewed_partitions

    empty = spark.createDataFrame([("t", 0, 0), ("t", 1, 0)], "topic string, partition int, records long")
    assert skewed_partitions(empty, AuditOptions(now_ms=0)).collect() == []
