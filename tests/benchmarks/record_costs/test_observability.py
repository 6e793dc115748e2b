from __future__ import annotations

import pytest

from benchmarks.harness.discarding_broker import discarding_broker
from benchmarks.record_costs import observability
from benchmarks.record_costs.observability import WAYS, Report, Run
from tests.benchmarks.environments import ENVIRONMENT
from tests.support.leaks import no_leaks as no_leaks


def test_the_added_cost_is_counted_within_a_round() -> None:
    spent = {way: (1000.0 + 10 * number, 2000.0 + 30 * number) for number, way in enumerate(WAYS)}
    runs = [Run(way, number, ns) for way, row in spent.items() for number, ns in enumerate(row, start=1)]
    words = Report(ENVIRONMENT, 10, runs, [1.0, 3.0, 2.0]).markdown()
    assert "| nothing | 1,500 |  |" in words
    assert "| Prometheus | 1,520 | 20 (10–30) |" in words
    assert "takes 2.0 ms (1.0–3.0)" in words


@pytest.mark.usefixtures("no_leaks")
async def test_each_way_delivers() -> None:
    async with discarding_broker(1) as servers:
        for way in WAYS:
            assert (await observability.measure(way, 1, servers, 100)).ns_per_record > 0
        assert await observability.scrape(servers) > 0
