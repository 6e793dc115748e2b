from __future__ import annotations

from aioproducer.cli.commands import perf_stats
from aioproducer.cli.commands.perf_stats import PerfStats
from aioproducer.testing.kafka.kafka_output import parse_performance

MIB = 1 << 20


def test_total() -> None:
    stats = PerfStats(4, 1000.0, interval=5000, say=lambda line: None)
    for latency in (1.0, 2.0, 3.0, 10.0):
        stats.record(latency, MIB, 1500.0)
    assert stats.total(3000.0) == (
        "4 records sent, 2.000000 records/sec (2.00 MB/sec), 4.00 ms avg latency, 10.00 ms max latency, "
        "3 ms 50th, 10 ms 95th, 10 ms 99th, 10 ms 99.9th."
    )


def test_kafkas_parser_of_the_tests_reads_it() -> None:
    stats = PerfStats(1, 0.0, interval=5000, say=lambda line: None)
    stats.record(7.0, 100, 500.0)
    result = parse_performance(stats.total(1000.0))
    assert (result.records, result.max_latency_ms, result.p999_ms) == (1, 7.0, 7)


def test_nothing_was_acknowledged() -> None:
    assert PerfStats(5, 0.0, interval=1, say=print).total(0.0).startswith("0 records sent, 0.000000 records/sec ")


def test_intervals() -> None:
    said: list[str] = []
    stats = PerfStats(10, 0.0, interval=1000, say=said.append)
    stats.record(5.0, MIB, 100.0)
    stats.record(7.0, MIB, 1000.0)
    stats.record(1.0, MIB, 2500.0)
    assert said == [
        "2 records sent, 2.0 records/sec (2.00 MB/sec), 6.0 ms avg latency, 7.0 ms max latency.",
        "1 records sent, 0.7 records/sec (0.67 MB/sec), 1.0 ms avg latency, 1.0 ms max latency.",
    ]
    # The longest of all is not that of the last interval.
    assert "7.00 ms max latency" in stats.total(3000.0)


def test_steady_state() -> None:
    said: list[str] = []
    stats = PerfStats(10, 0.0, interval=1000, say=said.append, steady_state=True)
    stats.record(5.0, 1, 1000.0)
    stats.record(5.0, 1, 2000.0)
    assert [line.partition(",")[0] for line in said] == ["In steady state.", "1 records sent", "1 records sent"]
    assert stats.total(2000.0).startswith("2 steady state records sent, ")


def test_silent() -> None:
    said: list[str] = []
    stats = PerfStats(10, 0.0, interval=1000, say=said.append)
    stats.silent = True
    stats.record(5.0, 1, 1000.0)
    assert said == []
    assert stats.count == 1


def test_of_many_records_a_part_makes_the_percentiles() -> None:
    records = 3 * perf_stats.MOST_SAMPLES
    stats = PerfStats(records, 0.0, interval=1e9, say=print)
    for number in range(3000):
        stats.record(float(number % 3), 1, 0.0)
    assert len(stats._samples) == 1000
    assert stats.count == 3000
