"""Reports of broker costs that are made up."""

from __future__ import annotations

from benchmarks.record_costs.broker_costs import SHAPES, Report, Run
from tests.benchmarks.environments import ENVIRONMENT


def costs_report(request: float = 60, batch: float = 20, record: float = 0.1) -> Report:
    """The figures of all shapes, in microseconds, for these costs."""
    us = {shape: request + shape.batches * (batch + shape.records * record) for shape in SHAPES}
    return Report(ENVIRONMENT, 10, [Run(shape, 1, 10, 10 * us[shape] / 1e6) for shape in SHAPES])
