"""A comparison that has three clients, of which one is not there."""

from __future__ import annotations

from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.report import Report
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
