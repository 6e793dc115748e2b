"""Figures in a file are read as they were written."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.broker import broker, connections
from benchmarks.broker.start import Start
from benchmarks.harness import command, results
from benchmarks.record_costs import encode, schemas
from benchmarks.services import services
from benchmarks.services.speed import Run, Speed
from benchmarks.services.trouble import Trouble
from benchmarks.spark import audit, spark
from tests.benchmarks.environments import ENVIRONMENT

ALONE = [
    audit.Report(ENVIRONMENT, "2g", [audit.Audited(1000, 4.0, 5.0, 3 << 20, True)]),
    broker.Report(
        ENVIRONMENT,
        10,
        100,
        1000,
        [broker.Rate("mock", 1, 1.5)],
        [broker.Latency(1, 0.5, 1.5, 9.0)],
        [Start(1, 0.3, None)],
    ),
    connections.Report(ENVIRONMENT, 1, [{"p50": 0.5}], [], [{"p99": 1.0}], [1536], [connections.Storm(1000, 990)]),
    encode.Report(ENVIRONMENT, 16384, 1, [encode.Run("a list", 1, 80.5, 109.0)]),
    schemas.Report(ENVIRONMENT, 1000, 1, [schemas.Run("Avro, a dict", "library alone", 1, 1.5)]),
    services.Report(
        ENVIRONMENT,
        Speed(200, 5, [Run(1, "default", "aiokafka", 1, 10, 450.0, 2.0, 9.0, 300.0, ["one"])]),
        troubles=[Trouble("a service", 10, {"201": 5}, 5, 1.5)],
    ),
    spark.Report(ENVIRONMENT, 1, [spark.Written("aioproducer", 1000, 100, 2, 2.5, 4.5, 1000)]),
]


@pytest.mark.parametrize("made", ALONE, ids=lambda made: type(made).__module__)
def test_a_report_of_one_command_is_the_same_when_it_is_read(made: command.Report, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    results.write(file, dataclasses.asdict(made))
    assert results.read_as(type(made), file) == made
