from __future__ import annotations

from benchmarks.comparison.case import Done
from benchmarks.harness.statistics import Spread
from benchmarks.works.run import Measurement
from tests.benchmarks.comparison.reports import a_case, measured


def test_summary() -> None:
    case = a_case(
        measured("ours", 1, 0.5, cpu=0.002, rss=10),
        measured("theirs", 1, 1.0, cpu=0.004, rss=40),
        measured("ours", 2, 2.0, cpu=0.004, rss=10),
        measured("theirs", 2, 6.0, cpu=0.002, rss=40),
        measured("ours", 3, 1.0, cpu=0.003, rss=10),
        measured("theirs", 3, 2.5, cpu=0.003, rss=40),
    )
    ours, theirs = case.summary("ours")
    assert (ours.client, ours.figures["speed"], ours.ratios["speed"]) == (
        "ours",
        Spread(1000, 500, 2000),
        Spread(1, 1, 1),
    )
    assert ours.figures["cpu"] == Spread(3.0, 2.0, 4.0)
    assert theirs.ratios == {
        "speed": Spread(2.5, 2.0, 3.0),
        "cpu": Spread(1.0, 0.5, 2.0),
        "rss": Spread(0.25, 0.25, 0.25),
    }
    assert theirs.problems == []


def test_latency_and_stall_are_in_milliseconds_where_they_were_measured() -> None:
    latency = {"p50": 0.001, "p99": 0.002, "p99.9": 0.003, "max": 0.004}
    timed = Measurement(1000, 1.0, 1.0, 1, latency=latency, stall={"p99.9": 0.005, "max": 0.006})
    figures = a_case(Done("ours", 1, timed)).summary("ours")[0].figures
    names = ("p50", "p99", "p99.9", "stall", "longest")
    assert [figures[name].median for name in names] == [1.0, 2.0, 3.0, 5.0, 6.0]
    assert not set(names) & set(a_case(measured("ours", 1, 1.0)).summary("ours")[0].figures)


def test_a_client_that_loses_records_gets_no_figures() -> None:
    case = a_case(
        measured("ours", 1, 1.0),
        measured("theirs", 1, 0.001, problem="900 of 1,000 records are not in the log"),
        measured("ours", 2, 1.0),
        Done("theirs", 2, None, "KafkaTimeoutError"),
    )
    _, theirs = case.summary("ours")
    assert theirs.figures == theirs.ratios == {}
    assert theirs.problems == ["round 1: 900 of 1,000 records are not in the log", "round 2: KafkaTimeoutError"]
