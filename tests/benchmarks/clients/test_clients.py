"""Each client that is installed does each of its works, against the embedded broker."""

from __future__ import annotations

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks.comparison.commands import COMPARED, parse_compare
from benchmarks.comparison.comparison import compare
from benchmarks.comparison.worker import describe
from benchmarks.works.curve_works import CURVE_WORKS
from benchmarks.works.works import PACED, STREAM, WORKS

DIFFERENT = ("stream-100", "keyed", "zstd", "tasks-100", "single", "paced", "topics=10")
"""The other works differ from these in numbers only."""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", COMPARED)
async def test_a_client_does_its_works(name: str) -> None:
    client = await describe(name)
    if client.missing:
        pytest.skip(client.missing)
    async with EmbeddedCluster() as cluster:
        arguments = ["--bootstrap-server", cluster.bootstrap_servers, "--rounds=1", "--records=300", "--clients", name]
        works = [work for name, work in {**WORKS, **CURVE_WORKS}.items() if name in DIFFERENT and name in client.works]
        report = await compare(parse_compare(arguments), works, lambda line: None)
    assert report.problems() == []
    for case in report.cases:
        # Nobody but confluent-kafka sets the pace.
        if case.work.way == PACED and name != "confluent-kafka":
            assert case.skipped
            continue
        (done,) = case.done
        assert done.measurement is not None
        assert done.measurement.records == 300
        assert done.measurement.peak_rss > 2**20
        assert done.measurement.cpu_seconds > 0
        assert bool(done.measurement.latency) == (case.work.way != STREAM)
    assert f"\n| {name} | " in report.markdown()
