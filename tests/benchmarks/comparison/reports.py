"""A comparison that has three clients, of which one is not there."""

from __future__ import annotations

from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.lines import Lines
from benchmarks.comparison.report import Report
from benchmarks.works.line_works import LINE_WORKS
from benchmarks.works.run import Description, Measurement
from benchmarks.works.works import WORKS
from tests.benchmarks.environments import ENVIRONMENT

CLIENTS_THERE = [
    Description("ours", "1.0", ["stream-100", "tasks-100", "paced"], True),
    Description("theirs", "2.0", ["stream-100"], False, share=4),
    Description("gone", missing="No module named 'gone'"),
]


def measured(client: str, number: int, seconds: float, cpu: float = 1.0, rss: int = 2**20, problem: str = "") -> Done:
    return Done(client, number, Measurement(1000, seconds, cpu, rss), problem)


def a_case(*done: Done) -> Case:
    return Case(WORKS["stream-100"], list(done))


def a_report(*done: Done) -> Report:
    return Report(ENVIRONMENT, CLIENTS_THERE, [a_case(*done)], 3)


def some_lines() -> Lines:
    """Of two clients over 50 ms, 40 and 10 MB/s to one partition; to six the second one has nothing."""

    def done(client: str, seconds: float, requests: int) -> Done:
        return Done(client, 1, Measurement(20_000, seconds, 0.04, 2**20, requests=requests, batch_bytes=2**18))

    runs = [[done("ours", 0.5, 50), done("theirs", 2.0, 20)], [done("ours", 0.25, 100), Done("theirs", 1, None, "no")]]
    names = ("line-1-50ms", "line-6-50ms")
    clients = [Description(name, "1.0", list(names), True) for name in ("ours", "theirs")]
    cases = [Case(LINE_WORKS[name], of) for name, of in zip(names, runs, strict=True)]
    return Lines(Report(ENVIRONMENT, clients, cases, 1), {50: 120.5})
