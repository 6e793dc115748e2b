from __future__ import annotations

import pytest

from aioproducer import MetricName, MetricsSnapshot, Outcome
from aioproducer.cli import report
from aioproducer.cli.sending import Tally


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (31_053_850, "31.1 MB"),
        (2e9, "2.0 GB"),
        (3.2e15, "3200.0 TB"),
    ],
)
def test_bytes(number: float, text: str) -> None:
    assert report.bytes_text(number) == text


def test_counts() -> None:
    assert [report.count(number, "record") for number in (0, 1, 2000)] == ["0 records", "1 record", "2,000 records"]


def metrics(batches: float, records: float) -> MetricsSnapshot:
    found = {"batch-total": batches, "record-send-total": records}
    return MetricsSnapshot({MetricName(name, "producer-metrics"): value for name, value in found.items()})


def test_delivered_records_are_reported() -> None:
    tally = Tally(delivered=3000, delivered_bytes=600_000)
    tally.latencies._samples = [0.001, 0.002, 0.003]
    assert dict(report.delivered(tally, metrics(20, 3000), 2.0)) == {
        "records": "3,000",
        "bytes": "600.0 kB of keys and values",
        "seconds": "2.00",
        "throughput": "1,500/s, 300.0 kB/s",
        "batches": "20, 150.0 records each",
        "acknowledged": "within 2.0 ms (p50), 3.0 ms (p99)",
    }


def test_a_report_of_no_records_in_no_time_has_zeros() -> None:
    rows = dict(report.delivered(Tally(), metrics(0, 0), 0.0))
    assert rows["batches"] == "0, 0.0 records each"
    assert rows["throughput"] == "0/s, 0 bytes/s"
    assert "acknowledged" not in rows


def test_undelivered_records_are_reported() -> None:
    tally = Tally()
    tally.add_failure("A", Outcome.UNKNOWN, "why")
    for _ in range(2):
        tally.add_failure("B", Outcome.NOT_SENT, "because")
    assert report.failed(tally) == ["        2  not sent: B: because", "        1  unknown: may have arrived: A: why"]
