from __future__ import annotations

import pytest

from benchmarks import observability
from benchmarks.discarding_broker import discarding_broker
from benchmarks.environment import Environment
from benchmarks.observability import WAYS, Report, Run
from tests.support.leaks import no_leaks as no_leaks

ENVIRONMENT = Environment("a day", "c0ffee", "a machine", "a system", 0.5, "Python", "uvloop", "a broker")


def test_what_is_added_is_of_the_same_round() -> None:
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
