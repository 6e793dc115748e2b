from __future__ import annotations

import pytest

from benchmarks.harness.environment import Environment
from benchmarks.pipelining import in_flight
from tests.support.leaks import no_leaks as no_leaks


def test_ratios_are_of_the_same_round_and_beside_the_kips() -> None:
    speeds = {1: (100.0, 200.0, 100.0), 5: (150.0, 280.0, 160.0), 10: (300.0, 400.0, 200.0)}
    runs = [
        in_flight.Run(number, round_, 10, speed, 2.0, 9.0)
        for number, rounds in speeds.items()
        for round_, speed in enumerate(rounds, start=1)
    ]
    report = in_flight.Report(Environment.now(loop="asyncio", broker="none"), 10, 3, runs)
    rows = [line for line in report.markdown().splitlines() if line.startswith("| ")][1:]
    assert rows == [
        "| 1 | 100 | 2.0 ms | 9.0 ms | 1.00 (1.00–1.00) | 1.00 |",
        "| 5 | 160 | 2.0 ms | 9.0 ms | 1.50 (1.40–1.60) | 1.44 |",
        "| 10 | 300 | 2.0 ms | 9.0 ms | 2.00 (2.00–3.00) | 1.55 |",
    ]


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("number", [1, 10])
async def test_a_run(number: int) -> None:
    run = await in_flight.measure(number, 1, 1000)
    assert (run.in_flight, run.records) == (number, 1000)
    assert run.records_per_s > 0
    assert run.average_ms > 0
