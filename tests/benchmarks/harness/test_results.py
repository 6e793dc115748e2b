"""Figures in a file are read as they were written."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.broker import broker, connections
from benchmarks.broker.start import Start
from benchmarks.harness import command, results
from benchmarks.pipelining import in_flight, pipeline, window
from benchmarks.pipelining.pipeline_run import PACED, SATURATING, Figures, Line
from benchmarks.record_costs import encode, observability, schemas
from benchmarks.services import services
from benchmarks.services.speed import Run, Speed
from benchmarks.services.trouble import Trouble
from benchmarks.spark import audit, spark
from benchmarks.stress import back_pressure, memory, outage, scale, threads
from tests.benchmarks.environments import ENVIRONMENT

ALONE = [
    back_pressure.Report(ENVIRONMENT, [back_pressure.Figures("many", 2, {"RecordMetadata": 2}, 40.0, 60.0, 1.5)]),
    in_flight.Report(ENVIRONMENT, 1000, 1, [in_flight.Run(5, 1, 1000, 98_000.0, 2.5, 9.0)]),
    memory.Report(ENVIRONMENT, 9, 32, [memory.Cost("A_COST", 1, 2)], [memory.Run(10, "send", memory.Held(1, 2, 3, 0))]),
    observability.Report(ENVIRONMENT, 1000, [observability.Run("nothing", 1, 700.5)], [1.5]),
    outage.Report(
        ENVIRONMENT,
        [outage.Outage("silent", 60.0, 12_000, 0.01, ["WARNING gone"], 150.5, 2000.0, ["lost"])],
        [outage.Gone(30_000, 2000, 12.5, 5.0, 0.01, [])],
    ),
    pipeline.Report(
        ENVIRONMENT,
        [Line(PACED, 20, 5), Line(SATURATING, 20, 5, 6)],
        ["5", "auto"],
        1,
        2.0,
        [
            Figures(Line(PACED, 20, 5), "auto", 1, 999.5, 20.0, 900.0, 22.5, 26.0),
            Figures(Line(SATURATING, 20, 5, 6), "5", 1, 999.5, 20.0, 900.0, None, None),
        ],
    ),
    scale.Report(ENVIRONMENT, [1, 10], 1, [scale.Figures("few", 10, 1, 3.5, 2.0)], [scale.Refresh(10, 1, 0.5, 1.0)]),
    threads.Report(ENVIRONMENT, [1, 2], 1, False, True, [threads.Run(2, 1, 1_400_000.0, 0.95)]),
    window.Report(ENVIRONMENT, [1, 5], 150.0, 1, [window.Rate(5, 1, 150.0, 150.5, 200, 33.5)]),
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
