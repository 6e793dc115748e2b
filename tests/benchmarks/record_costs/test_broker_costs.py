"""What requests, batches and records cost the broker: the arithmetic, and requests to the embedded one."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks.harness.blocking_connection import BlockingConnection
from benchmarks.harness.usage import cpu_seconds_of_threads
from benchmarks.record_costs.broker_costs import TOPIC, Report, Run, Shape, cost
from tests.benchmarks.environments import ENVIRONMENT
from tests.benchmarks.record_costs.broker_cost_reports import costs_report


def run_of(cluster: EmbeddedCluster, shape: Shape) -> Run:
    """With a broker that has used two seconds of CPU for it."""
    with closing(BlockingConnection(cluster.bootstrap_servers)) as connection:
        return cost(connection, shape, 1, 20, iter((1.0, 3.0)).__next__)


def test_three_shapes_give_the_costs() -> None:
    report = costs_report()
    assert report.request == pytest.approx(60)
    assert report.batch == pytest.approx(20)
    assert report.record == pytest.approx(0.1)
    assert report.problems() == []


def test_all_shapes_are_beside_what_is_computed_of_them() -> None:
    lines = costs_report().tables()
    assert "Computed: 60 for a request, 20 for each batch, 0.10 for each record." in lines
    assert "| 1 batch of 1 record | 80 | 80 | 1.00 |" in lines
    assert "| 6 batches of 130 records | 258 | 258 | 1.00 |" in lines


def test_a_shape_without_a_figure_is_a_problem() -> None:
    report = costs_report()
    fewer = Report(ENVIRONMENT, 10, [run for run in report.runs if run.shape != Shape(6, 130)])
    assert fewer.problems() == ["6 batches of 130 records has no figure"]


async def test_requests_have_their_shape() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic(TOPIC, 3)
        run = await asyncio.to_thread(run_of, cluster, Shape(3, 5))
        records = [len(list(cluster.log(TOPIC, partition).records())) for partition in range(3)]
    assert run.cpu == 2.0
    assert run.requests == 20
    assert records == [100] * 3


async def test_a_refused_batch_is_an_error() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic(TOPIC, 1)
        with pytest.raises(RuntimeError, match="the broker refused partition 1: error 3"):
            await asyncio.to_thread(run_of, cluster, Shape(2, 1))


def test_threads_without_that_name_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="has no thread none-such…"):
        cpu_seconds_of_threads(os.getpid(), "none-such")
